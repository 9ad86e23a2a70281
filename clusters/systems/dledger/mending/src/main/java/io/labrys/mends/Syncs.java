package io.labrys.mends;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** What the mended writer of small files calls; a jar with this mend has this class. */
public final class Syncs {
    private Syncs() {}

    /** Waits until a file is on the disk. */
    public static void file(String name) throws IOException {
        sync(Path.of(name), StandardOpenOption.WRITE);
    }

    /** Waits until the names in the folder of a file are on the disk. */
    public static void folderOf(String name) throws IOException {
        sync(Path.of(name).toAbsolutePath().getParent(), StandardOpenOption.READ);
    }

    private static void sync(Path path, StandardOpenOption option) throws IOException {
        try (FileChannel channel = FileChannel.open(path, option)) {
            channel.force(true);
        }
    }
}
