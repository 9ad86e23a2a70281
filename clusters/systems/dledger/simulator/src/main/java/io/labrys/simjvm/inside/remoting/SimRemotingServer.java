package io.labrys.simjvm.inside.remoting;

import io.labrys.simjvm.run.NetEvent;
import io.labrys.simjvm.run.Sockets;
import io.netty.channel.Channel;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import org.apache.rocketmq.common.Pair;
import org.apache.rocketmq.remoting.ChannelEventListener;
import org.apache.rocketmq.remoting.InvokeCallback;
import org.apache.rocketmq.remoting.RemotingServer;
import org.apache.rocketmq.remoting.exception.RemotingSendRequestException;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException;
import org.apache.rocketmq.remoting.netty.NettyEventType;
import org.apache.rocketmq.remoting.netty.NettyRequestProcessor;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** RocketMQ's remoting server on simulated connections, in the place of {@code NettyRemotingServer}. */
public final class SimRemotingServer extends SimRemoting implements RemotingServer {
    private final NettyServerConfig config;
    private final Map<Long, SimChannel> channels = new HashMap<>();

    /** Makes a server; see {@code NettyRemotingServer}. */
    public SimRemotingServer(NettyServerConfig config) {
        this(config, null);
    }

    /** Makes a server; see {@code NettyRemotingServer}. */
    public SimRemotingServer(NettyServerConfig config, ChannelEventListener listener) {
        super("Server", "NettyServerCodecThread_1", config.getServerOnewaySemaphoreValue(),
            config.getServerAsyncSemaphoreValue(), config.getServerCallbackExecutorThreads(), listener);
        this.config = config;
    }

    @Override
    public void start() {
        Sockets.listen(config.getListenPort(), mailbox);
        super.start();
    }

    @Override
    void handle(NetEvent event) {
        SimChannel channel = channels.get(event.connection());
        if (channel == null && event.kind() != NetEvent.Kind.ACCEPTED) {
            return; // this side has closed it
        }
        switch (event.kind()) {
            case ACCEPTED -> {
                SimChannel accepted = SimChannel.accepted(event.connection(), event.text(), this::ended);
                channels.put(event.connection(), accepted);
                tell(NettyEventType.CONNECT, accepted);
            }
            case DATA -> channel.receive(event.data(), this::processMessageReceived);
            case CLOSED -> channel.close();
            default -> throw new IllegalStateException("a server gets no event " + event.kind());
        }
    }

    private void ended(SimChannel channel) {
        channels.remove(channel.connection());
        tell(NettyEventType.CLOSE, channel);
        failFast(channel.channel());
    }

    @Override
    public void registerDefaultProcessor(NettyRequestProcessor processor, ExecutorService executor) {
        defaultRequestProcessorPair = new Pair<>(processor, executor);
    }

    @Override
    public int localListenPort() {
        return config.getListenPort();
    }

    @Override
    public Pair<NettyRequestProcessor, ExecutorService> getProcessorPair(int requestCode) {
        return processorTable.get(requestCode);
    }

    @Override
    public Pair<NettyRequestProcessor, ExecutorService> getDefaultProcessorPair() {
        return defaultRequestProcessorPair;
    }

    @Override
    public RemotingServer newRemotingServer(int port) {
        throw new UnsupportedOperationException("a simulated server has one port");
    }

    @Override
    public void removeRemotingServer(int port) {
        throw new UnsupportedOperationException("a simulated server has one port");
    }

    @Override
    public RemotingCommand invokeSync(Channel channel, RemotingCommand request, long timeoutMillis)
        throws InterruptedException, RemotingSendRequestException, RemotingTimeoutException {
        return invokeSyncImpl(channel, request, timeoutMillis);
    }

    @Override
    public void invokeAsync(Channel channel, RemotingCommand request, long timeoutMillis, InvokeCallback callback)
        throws InterruptedException, RemotingTooMuchRequestException, RemotingTimeoutException, RemotingSendRequestException {
        invokeAsyncImpl(channel, request, timeoutMillis, callback);
    }

    @Override
    public void invokeOneway(Channel channel, RemotingCommand request, long timeoutMillis)
        throws InterruptedException, RemotingTooMuchRequestException, RemotingTimeoutException, RemotingSendRequestException {
        invokeOnewayImpl(channel, request, timeoutMillis);
    }

    @Override
    public ExecutorService getCallbackExecutor() {
        return publicExecutor;
    }
}
