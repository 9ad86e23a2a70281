package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** One operation on one register, as JSON: {@code op} is get, put or cas. */
public class KvRequest extends UserDefineRequest {
    /** The type's number in a request's header. */
    public static final int TYPE = 1;

    private String op;
    private String key;
    private Long value;
    private Long expected;
    private String readMode;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }

    /** Returns get, put or cas. */
    public String getOp() {
        return op;
    }

    /** Sets {@link #getOp}. */
    public void setOp(String op) {
        this.op = op;
    }

    /** Returns the register's name. */
    public String getKey() {
        return key;
    }

    /** Sets {@link #getKey}. */
    public void setKey(String key) {
        this.key = key;
    }

    /** Returns the value that put and cas write. */
    public Long getValue() {
        return value;
    }

    /** Sets {@link #getValue}. */
    public void setValue(Long value) {
        this.value = value;
    }

    /** Returns the value that cas expects; null means that there is no such register. */
    public Long getExpected() {
        return expected;
    }

    /** Sets {@link #getExpected}. */
    public void setExpected(Long expected) {
        this.expected = expected;
    }

    /** Returns how to read: read-index, raft-log or unsafe. */
    public String getReadMode() {
        return readMode;
    }

    /** Sets {@link #getReadMode}. */
    public void setReadMode(String readMode) {
        this.readMode = readMode;
    }
}
