package command

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// The first signal cancels the context with ErrInterrupted as its cause; without a signal the caller
// cancels it.
func TestWithSignalCancel(t *testing.T) {
	signals := make(chan os.Signal, 1)
	env := &Env{Signals: signals}
	ctx, stop := env.WithSignalCancel(t.Context())
	stop()
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		t.Errorf("when its caller ends it: %v", context.Cause(ctx))
	}
	ctx, stop = env.WithSignalCancel(t.Context())
	defer stop()
	signals <- os.Interrupt
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		t.Errorf("after a signal: %v", context.Cause(ctx))
	}
}

// Wrong arguments are usage errors, with ExitUsage.
func TestArgumentChecks(t *testing.T) {
	c := &cobra.Command{Use: "frontier", SuggestionsMinimumDistance: 2}
	c.AddCommand(&cobra.Command{Use: "list", Run: func(*cobra.Command, []string) {}})
	diff := &cobra.Command{Use: "diff OLD NEW", Example: "  decorum diff a b\n  decorum diff c d"}
	batch := &cobra.Command{Use: "batch --agent NAME [--out FILE] FILE|URL…"}
	checkFormat := func(given string) error {
		c, format := &cobra.Command{}, ""
		AddFormatFlag(c, &format, "table", "json")
		format = given
		return c.PreRunE(c, nil)
	}
	_, badHost := ParseHostFlag("a b")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{RejectUnknownCommand(c, []string{"lst"}),
			`unknown command "lst" for frontier; did you mean list?; see frontier --help`},
		{ArgsOrUsageError(cobra.ExactArgs(2))(diff, []string{"a"}),
			"NEW is missing, as in decorum diff a b; see diff --help"},
		{ArgsOrUsageError(cobra.ExactArgs(2))(diff, nil),
			"OLD and NEW are missing, as in decorum diff a b; see diff --help"},
		{ArgsOrUsageError(cobra.ExactArgs(2))(diff, []string{"a", "b", "c"}), `unexpected argument "c"; see diff --help`},
		{ArgsOrUsageError(cobra.MinimumNArgs(1))(batch, nil), "FILE|URL is missing; see batch --help"},
		{ArgsOrUsageError(cobra.MaximumNArgs(1))(&cobra.Command{Use: "brake [HOST]"}, []string{"a", "b"}),
			`unexpected argument "b"; see brake --help`},
		{ArgsOrUsageError(cobra.NoArgs)(c, []string{"x"}), `unexpected argument "x"; see frontier --help`},
		{checkFormat("xml"), `--format: "xml" is not one of table, json`},
		{badHost, `--host: "a b" is not a host name such as example.com`},
	} {
		wrong := (*usage.Error)(nil)
		if !errors.As(tt.err, &wrong) || tt.err.Error() != tt.want || ExitCode(tt.err) != ExitUsage {
			t.Errorf("got %v, want %s", tt.err, tt.want)
		}
	}
	if err := errors.Join(RejectUnknownCommand(c, nil), checkFormat("json")); err != nil {
		t.Error(err)
	}
}
