import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.search.SearchModule;
import org.elasticsearch.xcontent.NamedXContentRegistry;
import org.elasticsearch.xcontent.XContentParser;
import org.elasticsearch.xcontent.XContentParserConfiguration;
import org.elasticsearch.xcontent.json.JsonXContent;
import org.elasticsearch.xpack.core.ml.action.PutTrainedModelAction;
import org.elasticsearch.xpack.core.ml.inference.MlInferenceNamedXContentProvider;
import org.elasticsearch.xpack.core.ml.inference.TrainedModelConfig;
import org.elasticsearch.xpack.core.ml.inference.results.SingleValueInferenceResults;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.LearningToRankConfig;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.RegressionConfig;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.inference.InferenceDefinition;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.ltr.QueryExtractorBuilder;
import org.elasticsearch.xpack.core.ml.ltr.MlLTRNamedXContentProvider;

/**
 * Each line of the input: "MODEL DATA OUT". The model is parsed as the body of a request that creates a trained
 * model, then evaluated as by the rescorer: features are float32 scores, NaN if the query of a feature does not match.
 */
public class ElasticsearchLtr {
  public static void main(String[] args) throws Exception {
    List<NamedXContentRegistry.Entry> entries = new ArrayList<>();
    entries.addAll(new MlInferenceNamedXContentProvider().getNamedXContentParsers());
    entries.addAll(new MlLTRNamedXContentProvider().getNamedXContentParsers());
    entries.addAll(new SearchModule(Settings.EMPTY, List.of()).getNamedXContents());
    NamedXContentRegistry registry = new NamedXContentRegistry(entries);
    XContentParserConfiguration configuration = XContentParserConfiguration.EMPTY.withRegistry(registry);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] words = line.split(" ");
      String text = Files.readString(Path.of(words[0]));
      TrainedModelConfig config;
      try (XContentParser parser = JsonXContent.jsonXContent.createParser(configuration, text)) {
        PutTrainedModelAction.Request request =
            PutTrainedModelAction.Request.parseRequest("ranker", false, false, parser);
        if (request.validate() != null) throw request.validate();
        config = request.getTrainedModelConfig();
      }
      config.ensureParsedDefinition(registry);
      config.getModelDefinition().getTrainedModel().validate();
      LearningToRankConfig ranking = (LearningToRankConfig) config.getInferenceConfig();
      Map<String, Float> defaults = new HashMap<>();
      for (QueryExtractorBuilder one : ranking.getQueryFeatureExtractorBuilders()) {
        one.validate();
        defaults.put(one.featureName(), one.defaultScore());
      }
      InferenceDefinition definition;
      Map<?, ?> body = (Map<?, ?>) parsed(configuration, text).get("definition");
      String alone = org.elasticsearch.common.Strings.toString(
          org.elasticsearch.xcontent.XContentFactory.jsonBuilder().map((Map<String, ?>) body));
      try (XContentParser parser = JsonXContent.jsonXContent.createParser(configuration, alone)) {
        definition = InferenceDefinition.fromXContent(parser);
      }
      List<String> rows = Files.readAllLines(Path.of(words[1])), scores = new ArrayList<>();
      String[] names = rows.get(0).split("\t");
      for (String row : rows.subList(1, rows.size())) {
        String[] values = row.split("\t");
        Map<String, Object> features = new HashMap<>();
        for (int j = 1; j < names.length; j++) {
          float value = Float.parseFloat(values[j]);
          if (defaults.containsKey(names[j]))
            features.put(names[j], Float.isNaN(value) ? defaults.get(names[j]) : (Object) value);
        }
        SingleValueInferenceResults result =
            (SingleValueInferenceResults) definition.infer(features, new RegressionConfig("score"));
        scores.add(Float.toString(result.value().floatValue()));
      }
      Files.write(Path.of(words[2]), scores);
    }
  }

  static Map<String, Object> parsed(XContentParserConfiguration configuration, String text) throws Exception {
    try (XContentParser parser = JsonXContent.jsonXContent.createParser(configuration, text)) {
      return parser.map();
    }
  }
}
