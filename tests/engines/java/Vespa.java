import ai.vespa.rankingexpression.importer.configmodelview.ImportedMlModels;
import com.yahoo.schema.ApplicationBuilder;
import com.yahoo.schema.RankProfile;
import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Each line of the input: "SCHEMA PROFILE PHASE DATA OUT". The schema is read as an application's; the compiled
 * expression of the phase is evaluated for each row of the data, whose first line has the names.
 */
public class Vespa {
  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] words = line.split(" ");
      ApplicationBuilder builder = ApplicationBuilder.createFromString(Files.readString(Path.of(words[0])));
      RankProfile profile =
          builder.getRankProfileRegistry().get(builder.getSchema(), words[1])
              .compile(builder.getQueryProfileRegistry(), new ImportedMlModels());
      RankingExpression expression = switch (words[2]) {
        case "first" -> profile.getFirstPhaseRanking();
        case "second" -> profile.getSecondPhaseRanking();
        default -> profile.getGlobalPhaseRanking();
      };
      List<String> rows = Files.readAllLines(Path.of(words[3])), scores = new ArrayList<>();
      String[] names = rows.get(0).split("\t");
      for (String row : rows.subList(1, rows.size())) {
        MapContext context = new MapContext();
        String[] values = row.split("\t");
        for (int j = 0; j < names.length; j++)
          context.put(names[j], new DoubleValue(Double.parseDouble(values[j])));
        scores.add(Double.toString(expression.evaluate(context).asDouble()));
      }
      Files.write(Path.of(words[4]), scores);
    }
  }
}
