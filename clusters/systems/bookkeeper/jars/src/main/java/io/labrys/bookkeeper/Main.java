package io.labrys.bookkeeper;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * A client of BookKeeper as a process of its own, which can be killed, paused and cut off like any other.
 *
 * <p>It serves requests over TCP; see {@link Session}. Each connection has a thread, and its requests are carried out one after
 * the other.
 */
public final class Main {
    private static final int BACKLOG = 100;

    private Main() {}

    /**
     * Serves until the process is killed.
     *
     * @param arguments the address and the port to listen on, the addresses of ZooKeeper, and a file with settings of
     *     BookKeeper's client
     * @throws Exception the port is taken, or the settings cannot be read
     */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 4) {
            throw new IllegalArgumentException("expected ADDRESS PORT ZOOKEEPER SETTINGS, found " + arguments.length + " arguments");
        }
        ClientConfiguration settings = new ClientConfiguration();
        settings.loadConf(Path.of(arguments[3]).toUri().toURL());
        Shared<BookKeeper> bookKeeper = new Shared<>(() -> new BookKeeper(settings));
        Lists lists = new Lists(arguments[2], settings.getZkTimeout());
        Ledgers ledgers = new Ledgers(bookKeeper, settings);
        try (ServerSocket server =
                new ServerSocket(Integer.parseInt(arguments[1]), BACKLOG, InetAddress.getByName(arguments[0]))) {
            System.out.println("serves on " + server.getLocalSocketAddress());
            while (true) {
                serve(server.accept(), ledgers, lists);
            }
        }
    }

    private static void serve(Socket socket, Ledgers ledgers, Lists lists) {
        Thread thread = new Thread(() -> {
            try (socket) {
                socket.setTcpNoDelay(true);
                new Session(ledgers, lists).serve(socket.getInputStream(), socket.getOutputStream());
            } catch (IOException error) {
                System.out.println("a connection ended: " + error);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
