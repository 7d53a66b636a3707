// Command supervise is the supervisor by itself, for binaries that someone else
// built: it needs nothing but the standard library and is built in seconds.
package main

import (
	"os"

	"windlass.dev/testenv/controlplane/supervise"
)

func main() {
	os.Exit(supervise.Main(os.Args[1:]))
}
