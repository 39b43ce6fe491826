// Command tendril is a self-extending agent: see the README.
package main

import (
	"os"

	"github.com/tendril-agent/tendril/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
