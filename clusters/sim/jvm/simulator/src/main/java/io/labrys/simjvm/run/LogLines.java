package io.labrys.simjvm.run;

import java.util.logging.Formatter;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.SimpleFormatter;

/** The lines of a node's log. They have the form of the log of a real node, without the time, which the reader puts before them. */
final class LogLines {
    private static final int MAX_FRAMES = 12;
    private static final Formatter MESSAGES = new SimpleFormatter();

    private LogLines() {}

    /** Returns the lines for a record: its level, the thread, the logger and the message, and then the first frames of its exception. */
    static String of(LogRecord record, String thread) {
        String logger = String.valueOf(record.getLoggerName());
        return of(level(record.getLevel()) + " [" + thread + "] " + logger.substring(logger.lastIndexOf('.') + 1) + ": "
            + MESSAGES.formatMessage(record), record.getThrown());
    }

    /** Returns the lines for a text and an exception; null for none. */
    static String of(String text, Throwable thrown) {
        StringBuilder lines = new StringBuilder(text);
        int frames = 0;
        for (Throwable error = thrown; error != null && frames < MAX_FRAMES; error = error.getCause()) {
            lines.append("\n  ").append(frames == 0 ? "" : "caused by ").append(error);
            for (StackTraceElement frame : error.getStackTrace()) {
                if (frames++ >= MAX_FRAMES) {
                    break;
                }
                lines.append("\n    at ").append(frame);
            }
        }
        return lines.toString();
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
