package capability

import (
	"context"
	"io"
)

func work(ctx context.Context, r *Registry, in io.Reader, out io.Writer) error { return nil }
