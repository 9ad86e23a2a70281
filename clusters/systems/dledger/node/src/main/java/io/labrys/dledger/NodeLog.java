package io.labrys.dledger;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.logging.FileHandler;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * The node's log: {@code node.0.log} is the current file, {@code node.1.log} and on are older.
 *
 * <p>The log never takes more than {@value #FILES} times {@value #FILE_BYTES} bytes. DLedger logs a line for every completed
 * request; this class drops it. An isolated node logs a stack trace for every message that it cannot deliver; this class
 * shortens it.
 */
final class NodeLog {
    private static final int FILE_BYTES = 16 << 20;
    private static final int FILES = 4;
    private static final int MAX_FRAMES = 12;
    static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);
    private static final String PER_REQUEST = "io.openmessaging.storage.dledger.DLedgerEntryPusher";

    /** A static reference, since the logging system forgets a logger and its level without one. */
    private static final List<Logger> QUIET = List.of(Logger.getLogger(PER_REQUEST));

    private NodeLog() {}

    /** Sends all log lines of this process to files in {@code directory}. */
    static void start(Path directory) throws IOException {
        Files.createDirectories(directory);
        Logger root = Logger.getLogger("");
        for (Handler handler : root.getHandlers()) {
            root.removeHandler(handler);
        }
        FileHandler file = new FileHandler(directory.resolve("node.%g.log").toString(), FILE_BYTES, FILES, true);
        file.setFormatter(new Lines(TIME));
        root.addHandler(file);
        root.setLevel(Level.INFO);
        quiet();
    }

    /** Gives the log of a simulated node the form of this log, without the times: the simulator puts its own before the lines. */
    static void startSimulated() {
        for (Handler handler : Logger.getLogger("").getHandlers()) {
            handler.setFormatter(new Lines(null));
        }
        quiet();
    }

    /** Drops the line for every completed request. */
    static void quiet() {
        QUIET.forEach(logger -> logger.setLevel(Level.WARNING));
    }

    /** Writes one line for a record, and then the first frames of its exception and the causes. */
    static final class Lines extends Formatter {
        private final DateTimeFormatter time;

        /** Makes the format; {@code time} is that of the time at the beginning of a line, and null for none. */
        Lines(DateTimeFormatter time) {
            this.time = time;
        }

        @Override
        public String format(LogRecord entry) {
            String logger = String.valueOf(entry.getLoggerName());
            StringBuilder line = new StringBuilder(200)
                .append(time == null ? "" : time.format(Instant.ofEpochMilli(entry.getMillis())) + ' ')
                .append(level(entry.getLevel()))
                .append(" [").append(Thread.currentThread().getName()).append("] ")
                .append(logger.substring(logger.lastIndexOf('.') + 1)).append(": ")
                .append(formatMessage(entry)).append('\n');
            int frames = 0;
            for (Throwable error = entry.getThrown(); error != null && frames < MAX_FRAMES; error = error.getCause()) {
                line.append("  ").append(frames == 0 ? "" : "caused by ").append(error).append('\n');
                for (StackTraceElement frame : error.getStackTrace()) {
                    if (frames++ >= MAX_FRAMES) {
                        break;
                    }
                    line.append("    at ").append(frame).append('\n');
                }
            }
            return line.toString();
        }

        private static String level(Level level) {
            if (level.intValue() >= Level.SEVERE.intValue()) {
                return "ERROR";
            }
            if (level.intValue() >= Level.WARNING.intValue()) {
                return "WARN ";
            }
            return level.intValue() >= Level.INFO.intValue() ? "INFO " : "DEBUG";
        }
    }
}
