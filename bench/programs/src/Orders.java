import java.util.HashMap;
import java.util.Map;

/** Sums orders by customer: many short-lived objects under the JVM's collector. */
public class Orders {
    record Order(int customer, String item, long cents) {}

    public static void main(String[] args) {
        Map<Integer, Long> totals = new HashMap<>();
        long state = 1;
        for (int i = 0; i < 12_000_000; i++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            Order order = new Order((int) (state >>> 40) % 50_000, "item" + (i & 1023), state >>> 50);
            totals.merge(order.customer(), order.cents(), Long::sum);
        }
        System.out.println(totals.size());
    }
}
