import ciir.umass.edu.eval.Evaluator;
import ciir.umass.edu.features.FeatureManager;
import ciir.umass.edu.learning.RankList;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Each line of the input: "score MODEL DATA OUT", or the arguments of RankLib's own command line. */
public class RankLib {
  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] words = line.split(" ");
      if (!words[0].equals("score")) {
        Evaluator.main(words);
        continue;
      }
      Ranker ranker = new RankerFactory().loadRankerFromFile(words[1]);
      List<String> scores = new ArrayList<>();
      for (RankList list : FeatureManager.readInput(words[2]))
        for (int i = 0; i < list.size(); i++) scores.add(Double.toString(ranker.eval(list.get(i))));
      Files.write(Path.of(words[3]), scores);
    }
  }
}
