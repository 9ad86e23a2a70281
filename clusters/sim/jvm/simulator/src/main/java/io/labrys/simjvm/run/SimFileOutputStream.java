package io.labrys.simjvm.run;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.channels.FileChannel;

/** {@link FileOutputStream} for simulated processes: the disk of the node learns of each write. */
public class SimFileOutputStream extends FileOutputStream {
    private final Disk disk;
    private final FileDescriptor descriptor;

    /** Opens a file. */
    public SimFileOutputStream(String name) throws IOException {
        this(new File(name), false);
    }

    /** Opens a file. */
    public SimFileOutputStream(String name, boolean append) throws IOException {
        this(new File(name), append);
    }

    /** Opens a file. */
    public SimFileOutputStream(File file) throws IOException {
        this(file, false);
    }

    /** Opens a file. */
    public SimFileOutputStream(File file, boolean append) throws IOException {
        super(begun(file), append);
        disk = SimProcess.current().disk();
        descriptor = getFD();
        disk.opened(file.toPath(), !append, descriptor);
    }

    private static File begun(File file) {
        Hooks.fileOperation();
        return file;
    }

    @Override
    public void write(int value) throws IOException {
        Hooks.fileOperation();
        disk.check("write", descriptor);
        disk.needRoom(1);
        super.write(value);
        disk.written(descriptor);
    }

    @Override
    public void write(byte[] bytes) throws IOException {
        write(bytes, 0, bytes.length);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
        Hooks.fileOperation();
        disk.check("write", descriptor);
        disk.needRoom(length);
        super.write(bytes, from, length);
        disk.written(descriptor);
    }

    @Override
    public FileChannel getChannel() {
        FileChannel channel = super.getChannel();
        disk.same(descriptor, channel);
        return channel;
    }
}
