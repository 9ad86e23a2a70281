package io.labrys.simjvm;

import io.labrys.simjvm.run.Guard;
import io.labrys.simjvm.run.NetEvent;
import io.labrys.simjvm.run.Output;
import io.labrys.simjvm.run.Scheduler;
import io.labrys.simjvm.run.SimProcess;
import io.labrys.simjvm.weave.WeavingLoader;
import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * The driver: reads commands from the standard input, and writes what the processes do to the standard output.
 *
 * <p>A frame from the controller has its length, and then commands. The last one is {@code T}, which lets the threads run. The
 * answer is one frame; see {@link Output}. Numbers are big-endian.
 */
public final class Main {
    private final Output output;
    private final Guard guard;
    private final ClassLoader loader;
    private final Map<String, SimProcess> processes = new LinkedHashMap<>();
    private Scheduler scheduler;
    private int started;

    private Main(Output output, ClassLoader loader) {
        this.output = output;
        this.guard = new Guard(output);
        this.loader = loader;
    }

    /** Runs until the input ends. The arguments: the jar of the program, and on a JVM other than 17 the home of a JDK 17. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length < 1 || arguments.length > 2) {
            System.err.println("simjvm: expected the jar of the program, and on a JVM other than 17 the home of a JDK 17");
            System.exit(64);
        }
        Output output = new Output(new java.io.BufferedOutputStream(System.out));
        System.setOut(new PrintStream(System.err, true, StandardCharsets.UTF_8)); // programs print to the log of the JVM
        Path jdk = arguments.length == 2 ? Path.of(arguments[1]) : null;
        Main main = new Main(output, new WeavingLoader(Path.of(arguments[0]), jdk));
        main.takeLog();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(System.in))) {
            main.serve(in);
        } catch (EOFException end) {
            Runtime.getRuntime().halt(0);
        }
    }

    /** Sends all records of java.util.logging to the log of the running process. */
    private void takeLog() {
        Logger root = Logger.getLogger("");
        for (Handler handler : root.getHandlers()) {
            root.removeHandler(handler);
        }
        root.addHandler(new Handler() {
            @Override
            public void publish(LogRecord record) {
                if (record.getLevel().intValue() >= Level.INFO.intValue() && scheduler.currentOrNull() != null) {
                    SimProcess.current().log(record);
                }
            }

            @Override
            public void flush() {
                // writes at once
            }

            @Override
            public void close() {
                // has nothing to close
            }
        });
    }

    private void serve(DataInputStream in) throws IOException {
        while (true) {
            byte[] frame = new byte[in.readInt()];
            in.readFully(frame);
            DataInputStream commands = new DataInputStream(new ByteArrayInputStream(frame));
            guard.busy(true);
            while (commands.available() > 0) {
                carryOut(commands);
            }
            guard.busy(false);
        }
    }

    private void carryOut(DataInputStream in) throws IOException {
        char command = (char) in.readByte();
        if (command == 'B') {
            begin(in.readLong(), in.readDouble(), in.readLong());
            return;
        }
        if (command == 'T') {
            long next = scheduler.advance(in.readLong());
            output.flush(scheduler.now(), next);
            return;
        }
        if (command == 'Z') {
            output.trace(scheduler.trace(), scheduler.decisions());
            return;
        }
        scheduler.reach(in.readLong());
        String node = text(in);
        switch (command) {
            case 'S' -> start(node, in.readLong(), text(in), texts(in));
            case 'K' -> kill(node);
            case 'P' -> process(node).pause();
            case 'R' -> process(node).resume();
            case 'C' -> process(node).setClock(in.readLong(), in.readLong(), in.readLong());
            case 'A' -> process(node).accept(in.readInt(), in.readLong(), text(in));
            case 'O' -> deliver(node, in.readLong(), NetEvent.Kind.OPENED, "", null);
            case 'X' -> deliver(node, in.readLong(), NetEvent.Kind.CLOSED, text(in), null);
            case 'D' -> deliver(node, in.readLong(), NetEvent.Kind.DATA, "", bytes(in));
            default -> throw new IOException("expected a command, found the byte " + (int) command);
        }
    }

    private void begin(long seed, double preempt, long stretchNanos) {
        if (scheduler != null) {
            throw new IllegalStateException("a JVM has one run");
        }
        scheduler = new Scheduler(guard, output, seed, preempt, stretchNanos);
    }

    private void start(String node, long seed, String main, String... arguments) {
        SimProcess process = new SimProcess(node, ++started, seed, loader);
        processes.put(node, process);
        process.start(main, arguments);
    }

    private void kill(String node) {
        SimProcess process = processes.remove(node);
        if (process != null) {
            process.kill();
        }
    }

    private void deliver(String node, long connection, NetEvent.Kind kind, String text, byte[] data) {
        process(node).deliver(connection, new NetEvent(kind, connection, text, data));
    }

    private SimProcess process(String node) {
        SimProcess found = processes.get(node);
        if (found == null) {
            throw new IllegalStateException("no process runs on " + node);
        }
        return found;
    }

    private static String[] texts(DataInputStream in) throws IOException {
        String[] found = new String[in.readInt()];
        for (int i = 0; i < found.length; i++) {
            found[i] = text(in);
        }
        return found;
    }

    private static String text(DataInputStream in) throws IOException {
        return new String(bytes(in), StandardCharsets.UTF_8);
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
        byte[] found = new byte[in.readInt()];
        in.readFully(found);
        return found;
    }
}
