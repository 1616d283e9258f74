// Sessions of which most expire, then a wait.
import java.util.HashMap;
import java.util.Map;

class Sessions {
    static Map<Integer, byte[]> sessions = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 300000; i++) sessions.put(i, new byte[400]);
        for (int i = 0; i < 300000; i++) if (i % 10 != 0) sessions.remove(i);
        System.gc();
        System.out.println("ready");
        System.in.read();
        System.out.println(sessions.size());
    }
}
