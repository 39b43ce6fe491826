// Command tendril is a self-extending agent: see the README.
package main

import (
	"os"

	"github.com/tendril-agent/tendril/internal/cli"
	"github.com/tendril-agent/tendril/internal/sandbox/jail"
)

func main() {
	jail.Main() // when we are started to become a capability's jail
	os.Exit(cli.Main(cli.Args(os.Args), cli.System()))
}
