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
 * <p>The law: it never takes more than {@value #FILES} times {@value #FILE_BYTES} bytes. DLedger writes a line for every
 * completed request, which is silenced, and a stack trace for every message that an isolated node cannot deliver, which is
 * cut short.
 */
final class NodeLog {
    private static final int FILE_BYTES = 16 << 20;
    private static final int FILES = 4;
    private static final int MAX_FRAMES = 12;
    private static final String PER_REQUEST = "io.openmessaging.storage.dledger.DLedgerEntryPusher";

    /** Held here, for the logging system itself forgets loggers, and their levels, that nobody holds. */
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
        file.setFormatter(new Lines());
        root.addHandler(file);
        root.setLevel(Level.INFO);
        QUIET.forEach(logger -> logger.setLevel(Level.WARNING));
    }

    /** One line for a record, in UTC; below it the first frames of its exception and of what caused that. */
    static final class Lines extends Formatter {
        private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

        @Override
        public String format(LogRecord entry) {
            String logger = String.valueOf(entry.getLoggerName());
            StringBuilder line = new StringBuilder(200)
                .append(TIME.format(Instant.ofEpochMilli(entry.getMillis())))
                .append(' ').append(level(entry.getLevel()))
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
