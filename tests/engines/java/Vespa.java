import ai.vespa.rankingexpression.importer.ModelImporter;
import ai.vespa.rankingexpression.importer.configmodelview.ImportedMlModels;
import ai.vespa.rankingexpression.importer.lightgbm.LightGBMImporter;
import ai.vespa.rankingexpression.importer.xgboost.XGBoostImporter;
import com.yahoo.schema.ApplicationBuilder;
import com.yahoo.schema.RankProfile;
import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Each line of the input: "SCHEMA PROFILE PHASE DATA OUT". The schema is read as an application's; the compiled
 * expression of the phase is evaluated for each row of the data, whose first line has the names; its
 * first column is the query. For the phase "import" SCHEMA is a model file of XGBoost or LightGBM.
 */
public class Vespa {
  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] words = line.split(" ");
      RankProfile profile = words[2].equals("import") ? null : profile(Files.readString(Path.of(words[0])), words[1]);
      RankingExpression expression = switch (words[2]) {
        case "import" -> imported(words[0]);
        case "first" -> profile.getFirstPhaseRanking();
        case "second" -> profile.getSecondPhaseRanking();
        default -> profile.getGlobalPhaseRanking();
      };
      List<String> rows = Files.readAllLines(Path.of(words[3])), scores = new ArrayList<>();
      String[] names = rows.get(0).split("\t");
      List<MapContext> contexts = new ArrayList<>(), query = new ArrayList<>();
      String last = null;
      for (String row : rows.subList(1, rows.size())) {
        String[] values = row.split("\t");
        if (!values[0].equals(last)) {
          normalize(profile, query);
          query.clear();
        }
        last = values[0];
        MapContext context = new MapContext();
        for (int j = 1; j < names.length; j++)
          context.put(names[j], new DoubleValue(Double.parseDouble(values[j])));
        query.add(context);
        contexts.add(context);
      }
      normalize(profile, query);
      for (MapContext context : contexts) scores.add(Double.toString(expression.evaluate(context).asDouble()));
      Files.write(Path.of(words[4]), scores);
    }
  }

  static RankProfile profile(String schema, String name) throws Exception {
    ApplicationBuilder builder = ApplicationBuilder.createFromString(schema);
    return builder.getRankProfileRegistry().get(builder.getSchema(), name)
        .compile(builder.getQueryProfileRegistry(), new ImportedMlModels());
  }

  /** The expression of a model file of XGBoost or LightGBM. */
  static RankingExpression imported(String file) {
    for (ModelImporter importer : List.of(new LightGBMImporter(), new XGBoostImporter()))
      if (importer.canImport(file)) return importer.importModel("model", file).expressions().values().iterator().next();
    throw new IllegalArgumentException("no importer for " + file);
  }

  /** Adds the values of normalize_linear and reciprocal_rank, over a query, by Vespa's classes for the global phase. */
  static void normalize(RankProfile profile, List<MapContext> query) throws Exception {
    if (profile == null) return;
    for (RankProfile.RankFeatureNormalizer one : profile.getFeatureNormalizers().values()) {
      Object normalizer = normalizer(one, Math.max(1, query.size()));
      for (MapContext context : query) call(normalizer, "addInput", double.class, context.get(one.input()).asDouble());
      call(normalizer, "normalize", null, null);
      for (int i = 0; i < query.size(); i++)
        query.get(i).put(one.name(), new DoubleValue((Double) call(normalizer, "getOutput", int.class, i)));
    }
  }

  static Object normalizer(RankProfile.RankFeatureNormalizer one, int size) throws Exception {
    boolean linear = one.algo().equals("LINEAR");
    Class<?> kind = Class.forName("com.yahoo.search.ranking." + (linear ? "Linear" : "ReciprocalRank") + "Normalizer");
    Constructor<?> make = linear ? kind.getDeclaredConstructor(int.class) : kind.getDeclaredConstructor(int.class, double.class);
    make.setAccessible(true);
    return linear ? make.newInstance(size) : make.newInstance(size, one.kparam());
  }

  static Object call(Object target, String name, Class<?> kind, Object argument) throws Exception {
    Class<?> base = Class.forName("com.yahoo.search.ranking.Normalizer");
    Method method = kind == null ? base.getDeclaredMethod(name) : base.getDeclaredMethod(name, kind);
    method.setAccessible(true);
    return kind == null ? method.invoke(target) : method.invoke(target, argument);
  }
}
