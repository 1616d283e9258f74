import java.util.ArrayList;
import java.util.List;

public class World {
    public static void main(String[] words) {
        long total = 0;
        switch (words[0]) {
            case "churn":
                for (int r = 0; r < 300; r++) {
                    List<byte[]> kept = new ArrayList<>();
                    for (int i = 0; i < 1000; i++) kept.add(new byte[8192]);
                    total += kept.size();
                }
                break;
            case "large":
                for (int r = 0; r < 60; r++) total += new byte[40 << 20].length;
                break;
            case "touch":
                List<byte[]> kept = new ArrayList<>();
                for (int i = 0; i < 70000; i++) kept.add(new byte[2000]);
                total = kept.size();
                break;
            default:
                for (long i = 0; i < 1_500_000_000L; i++) total = total * 3 + (i & 7);
        }
        System.out.println(total);
    }
}
