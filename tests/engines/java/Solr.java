import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** A Solr server on a free port of the loopback address, until the input ends. The argument is Solr's home. */
public class Solr {
  public static void main(String[] args) throws Exception {
    JettyConfig config =
        JettyConfig.builder().setContext("/solr").setHost("127.0.0.1").setPort(0).stopAtShutdown(true).build();
    JettySolrRunner server = new JettySolrRunner(args[0], config);
    server.start();
    System.out.println("READY " + server.getLocalPort());
    while (System.in.read() >= 0) {}
    server.stop();
    System.exit(0);
  }
}
