package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// soReusePort is SO_REUSEPORT on Linux; package syscall does not name it on
// every architecture.
const soReusePort = 0xf

// reservePort holds a port of 127.0.0.1 for as long as this process lives: the
// socket is bound and never listens, and the component binds beside it (each is
// told to share its port). Nothing else can take the port meanwhile, not even
// while the component restarts. With want 0 the kernel chooses.
func reservePort(want int) (int, error) {
	// Sockets that share a port get their connections by turns: another control plane there, which shares its
	// port too, would receive some of our requests. Without sharing, the port must be free of both kinds.
	if want != 0 {
		if err := isFree(want); err != nil {
			return 0, inUse(want, err)
		}
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soReusePort, 1); err != nil {
		syscall.Close(fd)
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: want, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		syscall.Close(fd)
		if want != 0 {
			return 0, inUse(want, err)
		}
		return 0, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		syscall.Close(fd)
		return 0, err
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}

// isFree fails if any socket is bound to the port, whether it shares the port or not. Connections that have
// ended do not count.
func isFree(port int) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return err
	}
	return syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func inUse(port int, err error) error {
	return fmt.Errorf("port %d of 127.0.0.1 is in use: choose another, or 0 for any free one (%w)", port, err)
}

// quietPort finds a port for a program that cannot share one with our reservation. It is below the range that
// outgoing connections use, so only a program that asks for this very port could take it meanwhile. Supervisors
// begin to search at a port that depends on their process id, so that two of them do not collide.
func quietPort() (int, error) {
	const first, count = 20000, 12000
	for i := range count {
		port := first + (os.Getpid()*37+i)%count
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, errors.New("no port between 20000 and 32000 is free on 127.0.0.1")
}
