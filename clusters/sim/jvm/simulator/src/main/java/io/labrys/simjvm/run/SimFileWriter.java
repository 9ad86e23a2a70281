package io.labrys.simjvm.run;

import java.io.File;
import java.io.IOException;
import java.io.OutputStreamWriter;

/** {@link java.io.FileWriter} for simulated processes. */
public class SimFileWriter extends OutputStreamWriter {
    /** Opens a file. */
    public SimFileWriter(String name) throws IOException {
        super(new SimFileOutputStream(name));
    }

    /** Opens a file. */
    public SimFileWriter(String name, boolean append) throws IOException {
        super(new SimFileOutputStream(name, append));
    }

    /** Opens a file. */
    public SimFileWriter(File file) throws IOException {
        super(new SimFileOutputStream(file));
    }

    /** Opens a file. */
    public SimFileWriter(File file, boolean append) throws IOException {
        super(new SimFileOutputStream(file, append));
    }
}
