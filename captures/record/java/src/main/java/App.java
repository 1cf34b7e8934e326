import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What every driver shares: its options (key=value), its payloads, and the log of what the application did. */
final class App {
    private static final Pattern NUMBER = Pattern.compile("\\d{7}");
    private final Map<String, String> options = new HashMap<>();
    private final CountDownLatch done;
    private int received;

    App(String[] arguments) {
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            options.put(pair[0], pair[1]);
        }
        done = new CountDownLatch(number("stop"));
    }

    String text(String key) {
        return options.getOrDefault(key, "");
    }

    int number(String key) {
        return Integer.parseInt(options.getOrDefault(key, "0"));
    }

    boolean sends() {
        return text("role").equals("sender");
    }

    boolean secured() {
        return !text("security").isEmpty();
    }

    /** One payload a line; its number is the line's. */
    List<String> payloads() throws Exception {
        return List.of(Files.readString(Path.of(text("payloads"))).split("\n"));
    }

    void sent(String payload) {
        log("S", payload.getBytes(StandardCharsets.UTF_8));
    }

    /** Logs a message unless the application has stopped receiving. */
    synchronized void received(byte[] payload) {
        if (received++ < number("stop")) {
            log("R", payload);
            done.countDown();
        }
    }

    void error(Object what) {
        System.out.println("E " + what);
    }

    /** Says that it is set up and waits until the recorder lets it begin. */
    void begin() throws InterruptedException {
        System.out.println("ready");
        while (!Files.exists(Path.of(text("begin")))) {
            Thread.sleep(5);
        }
    }

    void pause() throws InterruptedException {
        Thread.sleep(number("spacing_ms"));
    }

    /** Waits for the last message, and a little more so that its acknowledgement leaves before the socket closes. */
    void awaitLast() throws InterruptedException {
        if (!done.await(number("patience_s"), TimeUnit.SECONDS)) {
            error("stopped waiting after " + received + " messages");
        }
        Thread.sleep(20);
    }

    private static synchronized void log(String kind, byte[] payload) {
        Instant now = Instant.now();
        Matcher number = NUMBER.matcher(new String(payload, StandardCharsets.UTF_8));
        int id = number.find() ? Integer.parseInt(number.group()) : 0;
        System.out.printf("%s %d%09d %d %d%n", kind, now.getEpochSecond(), now.getNano(), payload.length, id);
    }
}
