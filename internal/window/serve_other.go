//go:build !linux || !(amd64 || arm64)

package window

import (
	"context"
	"errors"
	"net/url"
)

func show(context.Context, request, *url.URL, <-chan order, *reporter, func(string) string) error {
	return errors.New("there is no native window on this system")
}
