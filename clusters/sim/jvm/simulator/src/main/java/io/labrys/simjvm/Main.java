package io.labrys.simjvm;

import io.labrys.simjvm.run.Disk;
import io.labrys.simjvm.run.Guard;
import io.labrys.simjvm.run.NetEvent;
import io.labrys.simjvm.run.Output;
import io.labrys.simjvm.run.Scheduler;
import io.labrys.simjvm.run.SimProcess;
import io.labrys.simjvm.run.Statics;
import io.labrys.simjvm.run.Steps;
import io.labrys.simjvm.weave.WeavingLoader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/**
 * The driver: reads commands from the standard input, and writes what the processes do to the standard output.
 *
 * <p>A frame from the controller has commands. The last one is {@code T}, which lets the threads run until a time. The answer is one
 * frame; see {@link Output}. Before it, there can be others: the commands after a {@code T} are for the case that no thread has an
 * output until its time. With an output, the rest of the frame does not count, and the answer tells how many were carried out.
 * {@code Q} is alone in its frame: it asks for the state of a process, and its answer is a text. {@code H} is alone in its frame too:
 * it asks for the id of the thread of the driver. {@code J} is alone too: it asks for the steps of the disks. Numbers are big-endian. A JVM has one run after the other, and each is as in a new
 * JVM.
 */
public final class Main {
    private final Output output;
    private final Guard guard;
    private final ClassLoader loader;
    private final Handler log;
    private final Map<String, SimProcess> processes = new LinkedHashMap<>();
    private final Properties properties = (Properties) System.getProperties().clone();
    private final Map<String, Disk> disks = new HashMap<>();
    private boolean losesPower;
    /** The steps of the disks; null if the run needs none. */
    private Steps steps;
    private Scheduler scheduler;
    private int started;

    private Main(Output output, ClassLoader loader) {
        this.output = output;
        this.guard = new Guard(output);
        this.loader = loader;
        this.log = takeLog();
    }

    /** Runs until the input ends. The arguments: the jars of the program as a class path, and on a JVM other than 17 the home of a JDK 17. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length < 1 || arguments.length > 2) {
            System.err.println("simjvm: expected the jars of the program as a class path, and on a JVM other than 17 the home of a JDK 17");
            System.exit(64);
        }
        Output output = new Output(new FileOutputStream(FileDescriptor.out));
        System.setOut(new PrintStream(System.err, true, StandardCharsets.UTF_8)); // programs print to the log of the JVM
        Path jdk = arguments.length == 2 ? Path.of(arguments[1]) : null;
        Main main = new Main(output, new WeavingLoader(arguments[0], jdk));
        main.serve(new Input(new FileInputStream(FileDescriptor.in)));
        Runtime.getRuntime().halt(0);
    }

    /** Sends all records of java.util.logging to the log of the running process. A program can set the form of the lines. */
    private Handler takeLog() {
        Logger root = Logger.getLogger("");
        for (Handler other : root.getHandlers()) {
            root.removeHandler(other);
        }
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                if (record.getLevel().intValue() >= Level.INFO.intValue() && scheduler != null && scheduler.currentOrNull() != null) {
                    SimProcess.current().log(getFormatter().format(record).stripTrailing());
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
        };
        root.addHandler(handler);
        return handler;
    }

    /** Carries out frames until the input ends. */
    private void serve(Input in) throws IOException {
        for (ByteBuffer frame = in.next(); frame != null; frame = in.next()) {
            guard.busy(true);
            int advances = 0;
            while (frame.hasRemaining()) {
                char command = (char) frame.get();
                if (command != 'T') {
                    carryOut(command, frame);
                    continue;
                }
                long next = scheduler.advance(frame.getLong());
                advances++;
                if (!output.isEmpty() || !frame.hasRemaining()) {
                    output.flush(scheduler.now(), next, advances);
                    break;
                }
            }
            guard.busy(false);
        }
    }

    private void carryOut(char command, ByteBuffer in) throws IOException {
        if (command == 'B') {
            begin(in.getLong(), in.getDouble(), in.getDouble(), in.getDouble(), in.getLong(), in.get() != 0, in.get() != 0);
            return;
        }
        if (command == 'E') {
            end();
            return;
        }
        if (command == 'Q') {
            SimProcess process = processes.get(Input.text(in));
            String key = Input.text(in);
            output.answer(process == null ? "" : process.state(key));
            return;
        }
        if (command == 'H') {
            output.answer(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
            return;
        }
        if (command == 'J') {
            output.answer(steps.take());
            return;
        }
        if (command == 'Y') {
            steps.want(in.getLong(), List.of(Input.texts(in)), Input.text(in), Input.text(in), in.getLong());
            return;
        }
        if (command == 'y') {
            steps.drop(in.getLong());
            return;
        }
        if (command == 'Z') {
            output.trace(scheduler.trace(), scheduler.decisions());
            return;
        }
        scheduler.reach(in.getLong());
        String node = Input.text(in);
        switch (command) {
            case 'S' -> start(node, in.getLong(), Input.text(in), Input.texts(in));
            case 'K' -> kill(node);
            case 'P' -> process(node).pause();
            case 'R' -> process(node).resume();
            case 'W' -> output.lost(node, disk(node).losePower());
            case 'w' -> output.lost(node, disk(node).losePower(places(in), in.get() != 0));
            case 'V' -> wipe(node);
            case 'F' -> disk(node).damaged(Path.of(Input.text(in)));
            case 'U' -> disk(node).fill(in.get() != 0);
            case 'I' -> disk(node).fail(in.getLong(), Input.text(in), Input.text(in), in.getLong(), in.getLong(), Input.text(in));
            case 'i' -> disk(node).mend(in.getLong());
            case 'M' -> output.takes(node, disk(node).takesFile());
            case 'C' -> process(node).setClock(in.getLong(), in.getLong(), in.getLong());
            case 'A' -> accept(node, in.getInt(), in.getLong(), Input.text(in));
            case 'O' -> deliver(node, in.getLong(), NetEvent.Kind.OPENED, "", null);
            case 'X' -> deliver(node, in.getLong(), NetEvent.Kind.CLOSED, Input.text(in), null);
            case 'D' -> deliver(node, in.getLong(), NetEvent.Kind.DATA, "", Input.bytes(in));
            default -> throw new IOException("expected a command, found the byte " + (int) command);
        }
    }

    private void begin(long seed, double preempt, double pageFaults, double stalls, long stretchNanos, boolean losesPower, boolean notesSteps) {
        if (!processes.isEmpty()) {
            throw new IllegalStateException("the run before has not ended");
        }
        System.setProperties((Properties) properties.clone());
        log.setFormatter(new SimpleFormatter());
        if (Statics.any()) {
            resetStatics(seed);
        }
        started = 0;
        disks.clear();
        this.losesPower = losesPower;
        steps = notesSteps ? new Steps() : null;
        scheduler = new Scheduler(guard, output, seed, preempt, pageFaults, stalls, stretchNanos);
    }

    /** Resets the static fields of the processes, in a process of its own, in no time. */
    private void resetStatics(long seed) {
        scheduler = new Scheduler(guard, output, seed, 0, 0, 0, 0);
        boolean[] done = new boolean[1];
        SimProcess process = new SimProcess("statics", 0, seed, loader, disk("statics"));
        process.start(() -> {
            try {
                Statics.reset(loader);
                done[0] = true;
            } catch (Throwable e) { // a handle can throw anything
                guard.endOn(e);
                throw guard.broken("the static fields cannot be reset: " + e);
            }
        });
        scheduler.advance(0);
        process.kill();
        if (!done[0]) {
            throw guard.broken("the initializer of a class has blocked");
        }
    }

    /** Ends the run: kills all processes. */
    private void end() {
        processes.values().forEach(SimProcess::kill);
        processes.clear();
        guard.checkThreads();
    }

    private void start(String node, long seed, String main, String... arguments) {
        SimProcess process = new SimProcess(node, ++started, seed, loader, disk(node));
        processes.put(node, process);
        process.start(main, arguments);
    }

    /** Returns the disk of a node, which outlives its processes. */
    private Disk disk(String node) {
        return disks.computeIfAbsent(node,
            name -> new Disk(Path.of(name), scheduler.seed() * 31 + name.hashCode(), losesPower, steps));
    }

    /** Takes a new disk with the faults of the old one: what fills it is no file of the process. */
    private void wipe(String node) {
        Disk old = disks.remove(node);
        if (old != null) {
            disk(node).takeFaults(old);
        }
    }

    /** Reads the places of changes; null for all. */
    private static Set<Integer> places(ByteBuffer in) {
        int count = in.getInt();
        if (count < 0) {
            return null;
        }
        Set<Integer> places = new HashSet<>();
        for (int i = 0; i < count; i++) {
            places.add(in.getInt());
        }
        return places;
    }

    private void kill(String node) {
        SimProcess process = processes.remove(node);
        if (process != null) {
            process.kill();
        }
    }

    private void accept(String node, int port, long connection, String peer) {
        if (!process(node).accept(port, connection, peer)) {
            output.close(node, connection); // the process has closed the port
        }
    }

    private void deliver(String node, long connection, NetEvent.Kind kind, String text, byte[] data) {
        if (steps != null) {
            steps.message();
        }
        process(node).deliver(connection, new NetEvent(kind, connection, text, data));
    }

    private SimProcess process(String node) {
        SimProcess found = processes.get(node);
        if (found == null) {
            throw new IllegalStateException("no process runs on " + node);
        }
        return found;
    }
}
