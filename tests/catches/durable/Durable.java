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
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The server of durable.c in Java, with the same requests, answers, files and bugs. */
final class Durable {
    private static final int SECTOR = 512;
    private static final int RECORD = 2 * SECTOR;

    private final Map<String, String> registers = new HashMap<>();
    private final Path folder;
    private final String bug;
    private final FileChannel log;
    private int term;

    /** Reads the files, and cuts off a last record that is not whole. */
    private Durable(Path folder, String bug) throws IOException {
        this.folder = folder;
        this.bug = bug;
        log = FileChannel.open(folder.resolve("log"), StandardOpenOption.CREATE, StandardOpenOption.READ,
                StandardOpenOption.WRITE);
        long whole = 0;
        while (true) {
            ByteBuffer bytes = ByteBuffer.allocate(RECORD);
            int size = log.read(bytes);
            if (size <= 0 || size < RECORD && !bug.equals("torn-tail")) {
                break;
            }
            registers.put(text(bytes, 0), text(bytes, SECTOR));
            whole += size;
        }
        log.truncate(whole);
        log.position(whole);
        log.force(true);
        syncFolder();
        Path stored = folder.resolve("term");
        if (Files.exists(stored)) {
            term = Integer.parseInt(Files.readString(stored).strip());
        }
    }

    private static String text(ByteBuffer bytes, int from) {
        return new String(bytes.array(), from, SECTOR, StandardCharsets.US_ASCII).replace("\0", "");
    }

    private void syncFolder() throws IOException {
        try (FileChannel directory = FileChannel.open(folder)) {
            directory.force(true);
        }
    }

    private void store(String key, String value) throws IOException {
        byte[] bytes = Arrays.copyOf(key.getBytes(StandardCharsets.US_ASCII), RECORD);
        byte[] second = value.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(second, 0, bytes, SECTOR, second.length);
        log.write(ByteBuffer.wrap(bytes));
        if (!bug.equals("acknowledged-before-sync")) {
            log.force(false);
        }
        registers.put(key, value);
    }

    private void storeTerm() throws IOException {
        Path next = folder.resolve("term.new");
        try (FileChannel file = FileChannel.open(next, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING,
                StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.wrap((term + "\n").getBytes(StandardCharsets.US_ASCII)));
            file.force(false);
        }
        Files.move(next, folder.resolve("term"), StandardCopyOption.ATOMIC_MOVE);
        if (!bug.equals("lost-rename")) {
            syncFolder();
        }
    }

    private synchronized String carryOut(String[] words) throws IOException {
        if (words[0].equals("vote")) {
            term++;
            if (!bug.equals("vote-before-store")) {
                storeTerm();
            }
            return "ok " + term;
        }
        String value = registers.getOrDefault(words[1], "");
        String held = value.isEmpty() ? "-" : value;
        if (words[0].equals("cas") && !held.equals(words[2])) {
            return "no " + held;
        }
        if (!words[0].equals("read")) {
            store(words[1], words[words.length - 1]);
        }
        return "ok " + held;
    }

    private synchronized void storeLate() throws IOException {
        if (bug.equals("acknowledged-before-sync")) {
            log.force(false);
        }
        if (bug.equals("vote-before-store")) {
            storeTerm();
        }
    }

    private void serve(Socket connection) {
        try (connection) {
            BufferedReader requests =
                    new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.US_ASCII));
            for (String line = requests.readLine(); line != null; line = requests.readLine()) {
                String answer = carryOut(line.split(" ")) + "\n";
                connection.getOutputStream().write(answer.getBytes(StandardCharsets.US_ASCII));
                storeLate();
            }
        } catch (IOException e) {
            System.err.println(e);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Durable durable = new Durable(Path.of(arguments[1]), arguments.length > 2 ? arguments[2] : "none");
        try (ServerSocket server = new ServerSocket(Integer.parseInt(arguments[0]))) {
            while (true) {
                Socket connection = server.accept();
                new Thread(() -> durable.serve(connection)).start();
            }
        }
    }
}
