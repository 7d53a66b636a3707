// Command supervise is the supervisor alone, for Kubernetes binaries from elsewhere:
// it needs only the standard library and is built in seconds.
package main

import (
	"os"

	"windlass.dev/testenv/controlplane/supervise"
)

func main() {
	os.Exit(supervise.Main(os.Args[1:]))
}
