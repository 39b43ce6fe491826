package host

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// socketOwner finds the user of the socket that is connected from client to
// server, in the tables of this network namespace (proc_net_tcp.txt of the
// kernel's documentation). A client elsewhere is in none.
func socketOwner(client, server netip.AddrPort) (uid int, known bool) {
	for _, table := range []struct {
		path   string
		mapped bool
	}{{"/proc/net/tcp", false}, {"/proc/net/tcp6", true}} {
		if uid, known := ownerIn(table.path, inTable(client, table.mapped), inTable(server, table.mapped)); known {
			return uid, true
		}
	}
	return 0, false
}

func ownerIn(path, local, remote string) (uid int, known bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …
		if fields := strings.Fields(lines.Text()); len(fields) > 7 && fields[1] == local && fields[2] == remote {
			uid, err = strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// inTable writes an address as the tables do: words in the byte order of the
// machine.
func inTable(a netip.AddrPort, six bool) string {
	bytes := a.Addr().Unmap().AsSlice()
	if six {
		all := a.Addr().As16()
		bytes = all[:]
	}
	var s strings.Builder
	for ; len(bytes) > 0; bytes = bytes[4:] {
		fmt.Fprintf(&s, "%08X", binary.NativeEndian.Uint32(bytes))
	}
	return fmt.Sprintf("%s:%04X", s.String(), a.Port())
}
