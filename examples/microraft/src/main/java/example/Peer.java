package example;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The connection to another node. It sends frames in order, connects again after an error, and then drops what waited. */
final class Peer implements Runnable {
    private static final int CONNECT_MILLIS = 1_000;
    private static final long AGAIN_MILLIS = 200;

    private final String host;
    private final int port;
    private final BlockingQueue<byte[]> waiting = new LinkedBlockingQueue<>();
    private volatile boolean connected;

    Peer(String host, int port) {
        this.host = host;
        this.port = port;
    }

    void send(byte[] frame) {
        waiting.add(frame);
    }

    boolean isConnected() {
        return connected;
    }

    @Override
    public void run() {
        try {
            while (true) {
                try (Socket socket = new Socket()) {
                    socket.connect(new InetSocketAddress(host, port), CONNECT_MILLIS);
                    connected = true;
                    while (true) {
                        socket.getOutputStream().write(waiting.take());
                    }
                } catch (IOException e) {
                    connected = false;
                    waiting.clear();
                    Thread.sleep(AGAIN_MILLIS);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
