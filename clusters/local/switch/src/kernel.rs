//! The kernel's side: devices, sockets and the bridge.

use std::ffi::CString;
use std::fs;
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

// linux/sockios.h, linux/if_tun.h and linux/if_packet.h
const SIOCBRADDIF: libc::Ioctl = 0x89a2;
const SIOCBRDELIF: libc::Ioctl = 0x89a3;
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const CHECKSUM_AND_SEGMENTS: libc::c_ulong = 0x0f; // TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const BUFFER_BYTES: libc::c_int = 16 << 20;
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// What a port's own kernel must not do while the switch has it: answer ARP, and speak IPv6.
const QUIET: [(&str, &str); 2] = [("ipv4", "arp_ignore"), ("ipv6", "disable_ipv6")];
const QUIET_VALUES: [&str; 2] = ["8", "1"];

fn checked(result: libc::c_int, what: &str) -> io::Result<libc::c_int> {
    if result >= 0 {
        return Ok(result);
    }
    let error = Error::last_os_error();
    Err(Error::new(error.kind(), format!("{what}: {error}")))
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: an ifreq is plain data, and all zeros are one.
    let mut asked: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in asked.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *slot = byte as libc::c_char;
    }
    asked
}

fn index(name: &str) -> io::Result<libc::c_int> {
    let text = CString::new(name)?;
    // SAFETY: the text ends with a zero and lives during the call.
    let found = unsafe { libc::if_nametoindex(text.as_ptr()) };
    if found == 0 {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no device {name}")));
    }
    Ok(found as libc::c_int)
}

fn set(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: libc::c_int, what: &str) -> io::Result<()> {
    let size = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an int, and the kernel reads `size` bytes of it.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), size) };
    checked(result, what).map(drop)
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor, which nobody else owns.
    unsafe { Ok(OwnedFd::from_raw_fd(checked(libc::socket(family, kind | libc::SOCK_CLOEXEC, 0), "a socket")?)) }
}

/// A port: a device whose frames the switch reads and writes.
pub struct Port {
    pub descriptor: OwnedFd,
    is_device: bool,
    missed: u64,
}

impl Port {
    /// Opens the device of a node.
    pub fn of_device(name: &str) -> io::Result<Self> {
        let descriptor = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK)?;
        set(&descriptor, libc::SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR")?;
        set(&descriptor, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING")?;
        set(&descriptor, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES, "SO_RCVBUFFORCE")?;
        set(&descriptor, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER_BYTES, "SO_SNDBUFFORCE")?;
        // SAFETY: plain data, and all zeros are an address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL_PROTOCOLS;
        address.sll_ifindex = index(name)?;
        let size = std::mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads `size` bytes of the address.
        let bound = unsafe { libc::bind(descriptor.as_raw_fd(), (&raw const address).cast(), size) };
        checked(bound, &format!("bind to {name}"))?;
        Ok(Self { descriptor, is_device: true, missed: 0 })
    }

    /// Makes the device that joins the switch and the bridge. It ends with this process.
    pub fn made(name: &str) -> io::Result<Self> {
        let path = CString::new("/dev/net/tun")?;
        let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero; the descriptor is new, and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(checked(libc::open(path.as_ptr(), flags), "/dev/net/tun")?) };
        let mut asked = request(name);
        asked.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the kernel reads and writes one ifreq.
        checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), TUNSETIFF, &raw mut asked) }, "TUNSETIFF")?;
        // SAFETY: the argument is a number.
        let offload = unsafe { libc::ioctl(descriptor.as_raw_fd(), TUNSETOFFLOAD, CHECKSUM_AND_SEGMENTS) };
        checked(offload, "TUNSETOFFLOAD")?;
        Ok(Self { descriptor, is_device: false, missed: 0 })
    }

    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Reads a frame. None: there is none at the moment, or the device is down, which `poll` tells later.
    pub fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: the kernel writes at most the buffer's length into it.
        let count = unsafe { libc::read(self.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(count).ok().filter(|count| *count > 0)
    }

    /// Writes a frame. False: the device did not take it.
    pub fn write(&self, frame: &[u8]) -> bool {
        // SAFETY: the kernel reads at most the frame's length of it.
        unsafe { libc::write(self.raw(), frame.as_ptr().cast(), frame.len()) == frame.len() as isize }
    }

    /// The frames that came while the port had no room for them.
    pub fn missed(&mut self) -> u64 {
        if self.is_device {
            let mut counts = [0u32; 2]; // packets, drops; reading sets them to 0
            let mut size = std::mem::size_of_val(&counts) as libc::socklen_t;
            let into = counts.as_mut_ptr().cast();
            // SAFETY: the kernel writes at most `size` bytes.
            let read =
                unsafe { libc::getsockopt(self.raw(), libc::SOL_PACKET, PACKET_STATISTICS, into, &raw mut size) };
            self.missed += if read == 0 { u64::from(counts[1]) } else { 0 };
        }
        self.missed
    }
}

/// The bridge that joins the nodes without the switch.
pub struct Bridge {
    name: String,
    socket: OwnedFd,
}

impl Bridge {
    pub fn new(name: &str) -> io::Result<Self> {
        index(name)?;
        Ok(Self { name: name.to_owned(), socket: socket(libc::AF_INET, libc::SOCK_DGRAM)? })
    }

    fn ask(&self, what: libc::Ioctl, asked: &mut libc::ifreq, text: &str) -> io::Result<()> {
        // SAFETY: the kernel reads and writes one ifreq.
        checked(unsafe { libc::ioctl(self.socket.as_raw_fd(), what, std::ptr::from_mut(asked)) }, text).map(drop)
    }

    fn port(&self, what: libc::Ioctl, port: &str) -> io::Result<()> {
        let mut asked = request(&self.name);
        asked.ifr_ifru.ifru_ifindex = index(port)?;
        self.ask(what, &mut asked, &format!("{port} of {}", self.name))
    }

    /// Joins a device to the bridge.
    pub fn join(&self, port: &str) -> io::Result<()> {
        match self.port(SIOCBRADDIF, port) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Ok(()), // it is in the bridge
            other => other,
        }
    }

    /// Takes a device out of the bridge, and sees to it that only the switch speaks there.
    pub fn part(&self, port: &str) -> io::Result<()> {
        hush(port, QUIET_VALUES)?;
        match self.port(SIOCBRDELIF, port) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()), // an earlier switch was killed
            other => other,
        }
    }

    /// Gives a device back to the bridge.
    pub fn give_back(&self, port: &str) -> io::Result<()> {
        self.join(port)?;
        hush(port, ["0", "0"])
    }

    /// Lets the device carry frames.
    pub fn up(&self, port: &str) -> io::Result<()> {
        hush(port, QUIET_VALUES)?;
        let mut asked = request(port);
        self.ask(libc::SIOCGIFFLAGS as libc::Ioctl, &mut asked, port)?;
        // SAFETY: the kernel has just written the flags.
        asked.ifr_ifru.ifru_flags = unsafe { asked.ifr_ifru.ifru_flags } | libc::IFF_UP as libc::c_short;
        self.ask(libc::SIOCSIFFLAGS as libc::Ioctl, &mut asked, port)
    }
}

fn hush(port: &str, values: [&str; 2]) -> io::Result<()> {
    for ((family, name), value) in QUIET.iter().zip(values) {
        let path = PathBuf::from(format!("/proc/sys/net/{family}/conf/{port}/{name}"));
        match fs::write(&path, value) {
            Err(error) if error.kind() == ErrorKind::NotFound && *family == "ipv6" => {} // a kernel without IPv6
            Err(error) => return Err(Error::new(error.kind(), format!("{}: {error}", path.display()))),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Watches a process: the descriptor is readable when it has ended.
pub fn watch(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: a call with two numbers; the descriptor is new, and nobody else owns it.
    unsafe {
        let opened = libc::syscall(libc::SYS_pidfd_open, pid, 0) as libc::c_int;
        Ok(OwnedFd::from_raw_fd(checked(opened, &format!("process {pid}"))?))
    }
}

/// Takes the signals that ask for an end: the descriptor is readable when one has come.
pub fn signals() -> io::Result<OwnedFd> {
    // SAFETY: plain data that the calls fill; the descriptor is new, and nobody else owns it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()), "sigprocmask")?;
        Ok(OwnedFd::from_raw_fd(checked(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC), "signalfd")?))
    }
}

/// Lets this process go before others, as the bridge in the kernel does: else each packet waits for a busy machine.
pub fn go_first() -> io::Result<()> {
    // SAFETY: a call with numbers.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) }, "setpriority").map(drop)
}

/// The monotonic clock, in nanoseconds.
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The wall clock, in nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the time; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Waits until a descriptor is readable, or for `patience_ns`; None: without limit.
pub fn wait(polled: &mut [libc::pollfd], patience_ns: Option<u64>) {
    let limit = patience_ns.map(|left| libc::timespec {
        tv_sec: (left / 1_000_000_000) as libc::time_t,
        tv_nsec: (left % 1_000_000_000) as libc::c_long,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads and writes the descriptors, and reads the time, during the call. An error means that a signal
    // came, and the caller looks at the descriptors as after a time-out.
    if unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit, std::ptr::null()) } < 0 {
        for one in polled {
            one.revents = 0;
        }
    }
}
