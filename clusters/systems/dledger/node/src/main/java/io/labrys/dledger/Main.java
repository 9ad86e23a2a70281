package io.labrys.dledger;

import java.io.IOException;
import java.net.BindException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs one node until it is killed.
 *
 * <p>A node that cannot work ends, and writes the reason to standard error and to its log. Exit status 64 means a wrong
 * command line, 1 any other reason.
 */
public final class Main {
    private static final int USAGE_ERROR = 64;

    /** A static reference, since the garbage collector would release a lock without one. */
    private static FileLock lock;

    private Main() {}

    /** Starts the node; see {@link NodeOptions} for the arguments. */
    public static void main(String[] arguments) {
        NodeOptions options;
        try {
            options = NodeOptions.parse(arguments);
            NodeLog.start(options.logDirectory());
        } catch (IllegalArgumentException e) {
            end(USAGE_ERROR, e.getMessage());
            return;
        } catch (IOException e) {
            end(1, "the log cannot be written: " + e);
            return;
        }
        run(options);
    }

    private static void run(NodeOptions options) {
        Logger log = LoggerFactory.getLogger(Main.class);
        log.info("starting with {}", options);
        try {
            lock = lock(options.directory());
            Node node = options.registers() ? registers(options, log) : new PlainNode(options);
            node.start();
            log.info("listening on {}, data in {}", options.address(), options.directory());
        } catch (IOException | RuntimeException e) {
            String why = explain(options, e);
            log.error("cannot start: {}", why, e);
            end(1, why);
        }
    }

    private static Node registers(NodeOptions options, Logger log) {
        return Version.registers(options, error -> {
            log.error("FATAL: the library has given up", error);
            end(1, "the library has given up: " + error.getMessage());
        });
    }

    /** Locks the directory, so that no other process writes to the same files. */
    private static FileLock lock(Path directory) throws IOException {
        Files.createDirectories(directory);
        FileChannel channel = FileChannel.open(directory.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        FileLock lock = channel.tryLock();
        if (lock == null) {
            throw new IOException("another process works on " + directory);
        }
        return lock;
    }

    private static String explain(NodeOptions options, Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof BindException) {
                return "cannot listen on " + options.address() + ": " + cause.getMessage();
            }
        }
        return error.getClass() == IOException.class ? error.getMessage() : error.toString();
    }

    /** Ends the process at once. The library's threads would keep it alive, and its shutdown takes seconds. */
    private static void end(int status, String why) {
        System.err.println("dledger-node: " + why);
        Runtime.getRuntime().halt(status);
    }
}
