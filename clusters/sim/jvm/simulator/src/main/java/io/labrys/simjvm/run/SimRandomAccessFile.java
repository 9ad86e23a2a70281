package io.labrys.simjvm.run;

import java.io.File;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;

/** {@link RandomAccessFile} for simulated processes: the disk of the node learns of each write. */
public class SimRandomAccessFile extends RandomAccessFile {
    private final Disk disk;
    private final FileDescriptor descriptor;

    /** Opens a file. */
    public SimRandomAccessFile(String name, String mode) throws IOException {
        this(new File(name), mode);
    }

    /** Opens a file. */
    public SimRandomAccessFile(File file, String mode) throws IOException {
        super(begun(file), mode);
        disk = SimProcess.current().disk();
        descriptor = getFD();
        disk.opened(file.toPath(), false, descriptor);
    }

    private static File begun(File file) {
        Hooks.fileOperation();
        return file;
    }

    /** Returns the channel; {@link RandomAccessFile#getChannel} is final, so the weaver calls this in its place. */
    public static FileChannel channel(SimRandomAccessFile file) {
        FileChannel channel = file.getChannel();
        file.disk.same(file.descriptor, channel);
        return channel;
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
    public void setLength(long length) throws IOException {
        Hooks.fileOperation();
        super.setLength(length);
        disk.written(descriptor);
    }
}
