//! Ports that are chosen now and listened at later, by another process.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// A port of the loopback address that is ours until this is dropped.
///
/// Looking for a free port and letting go of it is a race: until the process that we start listens, any
/// connection that is opened on this machine may be given that port. A socket that is bound but does not
/// listen keeps the port from being given away, and since both sockets allow the address to be used again
/// (most servers ask for that), it does not keep the other process from listening there.
///
/// ```
/// use windlass_testenv::HeldPort;
///
/// let held = HeldPort::any()?;
/// // Here or in another process:
/// let listener = std::net::TcpListener::bind(held.address())?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct HeldPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl HeldPort {
    /// Chooses a free port.
    pub fn any() -> std::io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self { address: socket.local_addr()?, _socket: socket })
    }

    /// The address to listen on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port's number.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_held_port_can_be_listened_at() {
        let held = HeldPort::any().unwrap();
        assert!(TcpStream::connect(held.address()).is_err());
        let listener = TcpListener::bind(held.address()).unwrap();
        let client = TcpStream::connect(held.address()).unwrap();
        assert_eq!(listener.accept().unwrap().1, client.local_addr().unwrap());
    }

    #[test]
    fn a_held_port_is_given_to_nobody_else() {
        let held: Vec<HeldPort> = (0..500).map(|_| HeldPort::any().unwrap()).collect();
        let held: HashSet<u16> = held.iter().map(HeldPort::port).collect();
        assert_eq!(held.len(), 500);
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        for _ in 0..300 {
            let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            server.accept().unwrap();
            assert!(!held.contains(&client.local_addr().unwrap().port()));
            let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            assert!(!held.contains(&other.local_addr().unwrap().port()));
        }
    }
}
