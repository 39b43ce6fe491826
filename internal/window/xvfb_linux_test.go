//go:build linux && (amd64 || arm64)

package window

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// screen is an X server that nobody looks at.
type screen struct{ display string }

// newScreen starts an X server without authentication: it listens on a socket of this machine only.
func newScreen(t *testing.T) *screen {
	t.Helper()
	for _, program := range []string{"Xvfb", "xdotool", "xwininfo", "import"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs Xvfb, xdotool, xwininfo (x11-utils) and import (ImageMagick): ", err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1400x900x24", "-nolisten", "tcp")
	server.ExtraFiles = []*os.File{w}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal("Xvfb did not start: ", err)
	}
	return &screen{display: ":" + strings.TrimSpace(number)}
}

// run runs a program on the screen.
func (s *screen) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DISPLAY="+s.display)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return string(out)
}

// windows are the ids of the windows with this title, the uppermost first.
func (s *screen) windows(t *testing.T, title string) []uint32 {
	t.Helper()
	var ids []uint32
	line := regexp.MustCompile(`(?m)^ +0x([0-9a-f]+) "` + regexp.QuoteMeta(title) + `": \(".*  [0-9]{3,}x`) // no helpers of 10x10
	for _, found := range line.FindAllStringSubmatch(s.run(t, "xwininfo", "-root", "-tree"), -1) {
		id, err := strconv.ParseUint(found[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, uint32(id))
	}
	return ids
}

// window waits for a window with this title.
func (s *screen) window(t *testing.T, title string) uint32 {
	t.Helper()
	eventually(t, "there is a window "+title, func() bool { return len(s.windows(t, title)) > 0 })
	return s.windows(t, title)[0]
}

// pixel is the colour of a point.
func (s *screen) pixel(t *testing.T, x, y int) string {
	t.Helper()
	out := s.run(t, "import", "-window", "root", "-crop", fmt.Sprintf("1x1+%d+%d", x, y), "-depth", "8", "txt:-")
	if hex := regexp.MustCompile(`#[0-9A-F]{6}`).FindString(out); hex != "" {
		return hex
	}
	t.Fatalf("no colour in %q", out)
	return ""
}

func (s *screen) click(t *testing.T, x, y int) {
	t.Helper()
	s.run(t, "xdotool", "mousemove", strconv.Itoa(x), strconv.Itoa(y), "click", "1")
}

// askToClose sends a window what a window manager sends when a person closes it: the client message
// WM_DELETE_WINDOW (ICCCM, section 4.2.8.1), in the X protocol's own bytes.
func (s *screen) askToClose(t *testing.T, window uint32) {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join("/tmp/.X11-unix", "X"+strings.TrimPrefix(s.display, ":")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exchange := func(request []byte, reply int) []byte {
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, reply)
		if _, err := io.ReadFull(conn, answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	le := binary.LittleEndian
	setup := exchange([]byte{'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 8)
	if setup[0] != 1 {
		t.Fatal("the X server refused us")
	}
	exchange(nil, 4*int(le.Uint16(setup[6:])))
	atom := func(name string) uint32 { // InternAtom
		request := []byte{16, 0, 0, 0, byte(len(name)), 0, 0, 0}
		request = append(request, name...)
		request = append(request, make([]byte, -len(name)&3)...)
		le.PutUint16(request[2:], uint16(len(request)/4))
		return le.Uint32(exchange(request, 32)[8:])
	}
	protocols, remove := atom("WM_PROTOCOLS"), atom("WM_DELETE_WINDOW")
	event := make([]byte, 44) // SendEvent of a ClientMessage
	event[0], event[2], event[12], event[13] = 25, 11, 33, 32
	for at, value := range map[int]uint32{4: window, 16: window, 20: protocols, 24: remove} {
		le.PutUint32(event[at:], value)
	}
	exchange(append(event, 43, 0, 1, 0), 32) // and GetInputFocus: its answer says that the event is out
}

// processes are the processes of a name among the descendants of a process.
func processes(t *testing.T, ancestor int, name string) []int {
	t.Helper()
	parent, names := map[int]int{}, map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		start, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		pid, err1 := strconv.Atoi(strings.TrimSpace(string(text[:start])))
		ppid, err2 := strconv.Atoi(fields[1])
		if err1 != nil || err2 != nil {
			t.Fatalf("%s: %q", file, text)
		}
		if fields[0] != "Z" {
			parent[pid], names[pid] = ppid, string(text[start+1:end])
		}
	}
	var found []int
	for pid := range parent {
		up := pid
		for up != 0 && up != ancestor {
			up = parent[up]
		}
		if up == ancestor && names[pid] == name {
			found = append(found, pid)
		}
	}
	return found
}
