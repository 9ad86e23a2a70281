import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.logging.Logger;

/** What plain sockets do, in lines of the log. The first node serves, and the second one calls it. The arguments: the node, the host and the port. */
public final class Calls {
    private static final Logger LOG = Logger.getLogger("calls");
    private static int port;

    private Calls() {}

    public static void main(String[] arguments) throws IOException {
        String server = arguments[1];
        port = Integer.parseInt(arguments[2]);
        new Thread(arguments[0].equals("n1") ? Calls::serve : () -> call(server), "calls").start();
    }

    private static void say(String text) {
        LOG.info("calls: " + text);
    }

    private static void serve() {
        try (ServerSocket server = new ServerSocket(port)) {
            try {
                new ServerSocket(port).close();
            } catch (IOException e) {
                say("second port: " + e);
            }
            server.setSoTimeout(10_000);
            for (int count = 0; count < 4; count++) {
                try (Socket socket = server.accept()) {
                    InputStream in = socket.getInputStream();
                    say("got " + in.read() + " " + in.read() + " " + in.read());
                    socket.getOutputStream().write(new byte[] {7, 8});
                }
            }
            server.setSoTimeout(500);
            server.accept();
        } catch (IOException e) {
            say("accept: " + e);
        }
    }

    private static void call(String server) {
        try (Socket socket = new Socket(server, port)) {
            socket.getOutputStream().write(new byte[] {1, (byte) 255});
            socket.setSoTimeout(200);
            try {
                socket.getInputStream().read();
            } catch (IOException e) {
                say("read: " + e);
            }
            socket.setSoTimeout(0);
            Thread reader = Thread.currentThread();
            Thread closing = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    reader.interrupt();
                    Thread.sleep(300);
                    socket.close();
                } catch (IOException | InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }, "closing");
            closing.start();
            socket.getInputStream().read();
        } catch (SocketException e) {
            say("closed: " + e.getMessage() + ", interrupted " + Thread.interrupted());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(server, port), 1_000);
            socket.getOutputStream().write(new byte[] {2, 3, 4});
            InputStream in = socket.getInputStream();
            byte[] all = in.readAllBytes();
            say("answer " + all.length + " " + all[0] + " " + all[1] + ", then " + in.read());
            Thread.sleep(2_000);
            socket.getOutputStream().write(1);
            Thread.sleep(500); // until the kernel has the refusal
            socket.getOutputStream().write(1);
        } catch (IOException | InterruptedException e) {
            say("write: " + e);
        }
        sayWhatFollowsClose("a byte", server, 1);
        sayWhatFollowsClose("the end", server, 3);
        try (Socket socket = new Socket(server, port + 1)) {
            say("connected");
        } catch (IOException e) {
            say("connect: " + e);
        }
    }

    private static void sayWhatFollowsClose(String what, String server, int reads) {
        InputStream in;
        try (Socket socket = new Socket(server, port)) {
            socket.getOutputStream().write(new byte[] {5, 6, 7});
            in = socket.getInputStream();
            for (int count = 0; count < reads; count++) {
                in.read();
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        try {
            say("closed after " + what + ": " + in.read());
        } catch (IOException e) {
            say("closed after " + what + ": " + e);
        }
        try {
            say("available: " + in.available());
        } catch (IOException e) {
            say("available: " + e);
        }
    }
}
