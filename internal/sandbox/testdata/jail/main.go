// Command jail is what the tests start as the operating system layer where
// they themselves are built with the race detector, which makes each start slow.
package main

import "github.com/tendril-agent/tendril/internal/sandbox/jail"

func main() { jail.Main() }
