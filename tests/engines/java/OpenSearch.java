import org.codelibs.opensearch.runner.OpenSearchRunner;

/**
 * A node on a port of the loopback address, until the input ends. The arguments are a folder for its data and the
 * classes of plugins, separated by commas.
 */
public class OpenSearch {
  public static void main(String[] args) throws Exception {
    OpenSearchRunner runner = new OpenSearchRunner();
    runner.setMaxHttpPort(19999);
    runner.onBuild((number, settings) -> {
      settings.put("network.host", "127.0.0.1");
      settings.put("discovery.type", "single-node");
      settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
    });
    OpenSearchRunner.Configs configs = OpenSearchRunner.newConfigs();
    configs.basePath(args[0]).numOfNode(1).clusterName("engines").baseHttpPort(19200);
    if (args.length > 1) configs.pluginTypes(args[1]);
    runner.build(configs);
    runner.ensureYellow();
    System.out.println("READY " + runner.node().settings().get("http.port"));
    while (System.in.read() >= 0) {}
    runner.close();
    System.exit(0);
  }
}
