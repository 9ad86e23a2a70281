//! How connections of TCP end that nobody answers: retransmissions that come to their end, and keepalive. Source: tcp(7).
//!
//! A direction that is cut, or a node without power, answers nothing. A message that cannot arrive or is lost counts from then on,
//! and so does one whose answer cannot come back.

use libc::{c_int, ETIMEDOUT};

use super::network::{retransmission, FIRST_CONNECT_RETRY, FIRST_RETRANSMISSION};
use super::objects::Kind;
use super::tcp::{Phase, Stream};
use super::{Event, Kernel, Nanos, NodeId, ObjectId, MILLISECOND, SECOND};
use crate::tracee;

/// The end of 15 retransmissions, `tcp_retries2`, whose pauses double from 0.2 s to 120 s.
const MOST_SILENCE: Nanos = 924_600 * MILLISECOND;
/// The end of 6 retransmissions of a request for a connection, `tcp_syn_retries`, whose pauses double from 1 s.
const MOST_CONNECTING: Nanos = 127 * SECOND;
const KEEP_IDLE: u32 = 7_200; // s: `tcp_keepalive_time`
const KEEP_INTERVAL: u32 = 75; // s: `tcp_keepalive_intvl`
const KEEP_COUNT: u32 = 9; // `tcp_keepalive_probes`

impl Stream {
    fn option(&self, level: c_int, name: c_int) -> Option<u32> {
        self.options.get(&(level, name)).filter(|value| value.len() >= 4).map(|value| tracee::u32_at(value, 0))
    }

    /// Returns for how long it waits for an answer.
    fn most_silence(&self) -> Nanos {
        let usual = if self.phase == Phase::Connecting { MOST_CONNECTING } else { MOST_SILENCE };
        match self.user_timeout() {
            Some(own) if self.phase == Phase::Connecting => usual.min(own),
            Some(own) => own,
            None => usual,
        }
    }

    fn user_timeout(&self) -> Option<Nanos> {
        self.option(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT)
            .filter(|limit| *limit > 0)
            .map(|limit| u64::from(limit) * MILLISECOND)
    }

    fn keeps_alive(&self) -> bool {
        let is_open = self.phase == Phase::Connected && !self.is_reset && !self.is_unix();
        is_open && self.option(libc::SOL_SOCKET, libc::SO_KEEPALIVE).is_some_and(|flag| flag != 0)
    }

    fn seconds(&self, name: c_int, usual: u32) -> Nanos {
        u64::from(self.option(libc::IPPROTO_TCP, name).unwrap_or(usual)) * SECOND
    }
}

impl Kernel {
    /// Returns whether a node cannot hear an answer of another one.
    fn is_silent(&self, from: NodeId, to: NodeId) -> bool {
        self.links.has_cut(from, to) || self.links.has_cut(to, from) || self.nodes[to].is_down
    }

    /// A message of a stream has come to its place, or cannot come there now.
    pub(super) fn sent_by(&mut self, object: ObjectId, has_arrived: bool) {
        let (now, from) = (self.now, self.objects[object].node);
        let Kind::Stream(stream) = &self.objects[object].kind else { return };
        let is_answered = has_arrived && !self.links.has_cut(stream.peer_node, from);
        let stream = self.stream(object);
        if is_answered {
            (stream.unanswered, stream.probes, stream.heard) = (None, 0, now);
        } else if stream.unanswered.is_none() && matches!(stream.phase, Phase::Connecting | Phase::Connected) {
            stream.unanswered = Some(now);
            let at = now + stream.most_silence();
            self.at(at, Event::Silence { object, since: now });
        }
    }

    /// A stream has waited for an answer for as long as it can.
    pub(super) fn end_silence(&mut self, object: ObjectId, since: Nanos) {
        if matches!(&self.objects[object].kind, Kind::Stream(stream) if stream.unanswered == Some(since)) {
            self.give_up(object);
        }
    }

    /// Some directions or nodes work again: what waits for an answer there gets one with its next retransmission, if there is one.
    pub(super) fn hear_again(&mut self) {
        for object in 0..self.objects.len() {
            let Kind::Stream(stream) = &self.objects[object].kind else { continue };
            let Some(since) = stream.unanswered else { continue };
            let first = if stream.phase == Phase::Connecting { FIRST_CONNECT_RETRY } else { FIRST_RETRANSMISSION };
            let is_over = retransmission(since, self.now, first) >= since + stream.most_silence();
            if !is_over && !self.is_silent(self.objects[object].node, stream.peer_node) {
                self.stream(object).unanswered = None;
            }
        }
    }

    /// Returns whether a stream sends nothing again, though its way is free: its retransmissions are over.
    pub(super) fn is_over(&self, object: ObjectId) -> bool {
        match &self.objects[object].kind {
            Kind::Stream(stream) if stream.unanswered.is_some() => {
                !self.is_silent(self.objects[object].node, stream.peer_node)
            }
            _ => false,
        }
    }

    /// A connection ends, because nobody answers.
    fn give_up(&mut self, object: ObjectId) {
        let stream = self.stream(object);
        stream.unanswered = None;
        match stream.phase {
            Phase::Connecting => stream.phase = Phase::Failed,
            Phase::Connected if !stream.is_reset => stream.is_reset = true,
            _ => return,
        }
        stream.error = ETIMEDOUT;
        self.links.forget(object);
        self.changed(object);
    }

    /// A connection may have to be kept alive from now on.
    pub(super) fn watch_connection(&mut self, object: ObjectId) {
        let now = self.now;
        let Kind::Stream(stream) = &mut self.objects[object].kind else { return };
        if stream.keeps_alive() {
            stream.keep_turn += 1;
            (stream.heard, stream.probes) = (now, 0);
            let (turn, idle) = (stream.keep_turn, stream.seconds(libc::TCP_KEEPIDLE, KEEP_IDLE));
            self.at(now + idle, Event::Keep { object, turn });
        }
    }

    /// A connection that is kept alive may have been idle for long: asks the other end.
    pub(super) fn keep_alive(&mut self, object: ObjectId, turn: u64) {
        let (now, node) = (self.now, self.objects[object].node);
        let Kind::Stream(stream) = &self.objects[object].kind else { return };
        if stream.keep_turn != turn || !stream.keeps_alive() {
            return;
        }
        let idle = stream.seconds(libc::TCP_KEEPIDLE, KEEP_IDLE);
        let most = stream.option(libc::IPPROTO_TCP, libc::TCP_KEEPCNT).unwrap_or(KEEP_COUNT);
        let (heard, is_outstanding) = (stream.heard, stream.unanswered.is_some());
        let next = if is_outstanding || stream.probes == 0 && now < heard + idle {
            if is_outstanding {
                now + idle
            } else {
                heard + idle
            }
        } else if self.is_silent(node, stream.peer_node) {
            let is_over = match stream.user_timeout() {
                Some(limit) => stream.probes > 0 && now >= heard + limit,
                None => stream.probes >= most,
            };
            if is_over {
                return self.give_up(object);
            }
            let next = now + stream.seconds(libc::TCP_KEEPINTVL, KEEP_INTERVAL);
            self.stream(object).probes += 1;
            next
        } else if stream.peer_ended || self.is_open(stream.peer) {
            let stream = self.stream(object);
            (stream.heard, stream.probes) = (now, 0);
            now + idle
        } else {
            // The other end has lost its power: its node does not know the connection.
            let stream = self.stream(object);
            (stream.is_reset, stream.error) = (true, libc::ECONNRESET);
            return self.changed(object);
        };
        self.at(next, Event::Keep { object, turn });
    }

    fn is_open(&self, peer: Option<ObjectId>) -> bool {
        peer.is_some_and(|peer| {
            matches!(&self.objects[peer].kind, Kind::Stream(stream) if stream.phase == Phase::Connected && !stream.is_reset)
        })
    }
}
