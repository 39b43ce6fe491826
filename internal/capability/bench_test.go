package capability

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkList(b *testing.B) {
	for _, n := range []int{10, 500, 5000} {
		opts := testOptions(b)
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("tool_%d", i)
		}
		writeTool(b, opts, "index.json", seedIndex(all...))
		r := openWith(b, opts)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := r.List(b.Context(), "tool that does it"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRegister is a registration without the checks of Deno.
func BenchmarkRegister(b *testing.B) {
	r := openWith(b, testOptions(b))
	for i := 0; b.Loop(); i++ {
		if _, err := r.Register(b.Context(), definition("x"), strings.Repeat("/", i%1000)+fmt.Sprint(i), Provenance{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	r := openWith(b, testOptions(b))
	register(b, r, definition("x"), "1")
	for b.Loop() {
		if _, err := r.Resolve(b.Context(), "x", nil); err != nil {
			b.Fatal(err)
		}
	}
}
