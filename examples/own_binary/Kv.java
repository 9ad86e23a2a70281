import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;

/**
 * A small key-value server: registers in memory and in a log, with one thread for each connection.
 *
 * <p>{@code java Kv PORT FOLDER [BUG]}; requests, answers and bugs are those of kv.c.
 */
final class Kv {
    private final Map<String, String> values = new HashMap<>();
    private final FileChannel log;
    private final String bug;

    private Kv(Path folder, String bug) throws IOException {
        this.bug = bug;
        Path path = folder.resolve("log");
        log = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        String content = Files.readString(path);
        String whole = content.substring(0, content.lastIndexOf('\n') + 1); // the last line may not be whole
        log.truncate(whole.length());
        log.force(true);
        try (FileChannel directory = FileChannel.open(folder)) {
            directory.force(true);
        }
        for (String line : whole.split("\n")) {
            String[] words = line.split(" ");
            if (words.length == 2) {
                values.put(words[0], words[1]);
            }
        }
        System.out.println(values.size() + " registers, " + whole.length() + " bytes");
    }

    private synchronized String read(String key) {
        return values.getOrDefault(key, "-");
    }

    private synchronized void write(String key, String value) throws IOException {
        log.write(ByteBuffer.wrap((key + " " + value + "\n").getBytes(StandardCharsets.US_ASCII)));
        if (!bug.equals("no-sync") && !bug.equals("answer-before-sync")) {
            log.force(false);
        }
        values.put(key, value);
    }

    private synchronized String cas(String key, String old, String value) throws IOException {
        return casInSteps(key, old, value);
    }

    private String casInSteps(String key, String old, String value) throws IOException {
        String held = read(key);
        System.out.println("cas of " + key + " from " + old + " to " + value + ": it holds " + held);
        if (!held.equals(old)) {
            return "no " + held;
        }
        write(key, value);
        return "ok " + value;
    }

    private String carryOut(String[] words) throws IOException {
        switch (words[0]) {
            case "read":
                return "ok " + read(words[1]);
            case "write":
                write(words[1], words[2]);
                return "ok " + words[2];
            case "cas":
                // Without the lock of `cas`, another thread may come between the two steps, each of which has it.
                boolean planted = bug.equals("cas-in-two-steps");
                return planted ? casInSteps(words[1], words[2], words[3]) : cas(words[1], words[2], words[3]);
            default:
                return "unknown request";
        }
    }

    private void serve(Socket connection) {
        try (connection) {
            BufferedReader requests =
                    new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.US_ASCII));
            for (String line = requests.readLine(); line != null; line = requests.readLine()) {
                String answer = carryOut(line.split(" ")) + "\n";
                connection.getOutputStream().write(answer.getBytes(StandardCharsets.US_ASCII));
                if (bug.equals("answer-before-sync")) {
                    log.force(false);
                }
            }
        } catch (IOException e) {
            System.err.println(e);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Kv kv = new Kv(Path.of(arguments[1]), arguments.length > 2 ? arguments[2] : "none");
        try (ServerSocket server = new ServerSocket(Integer.parseInt(arguments[0]))) {
            while (true) {
                Socket connection = server.accept();
                new Thread(() -> kv.serve(connection)).start();
            }
        }
    }
}
