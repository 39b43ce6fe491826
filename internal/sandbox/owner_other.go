//go:build !linux

package sandbox

import "github.com/tendril-agent/tendril/internal/sandbox/jail"

func ownerOf(string) *jail.User { return nil }
