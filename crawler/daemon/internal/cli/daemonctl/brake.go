package daemonctl

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const brakeHelp = `Stop or slow a host at once, in all projects of a running daemon. The daemon aborts
the requests to the host that are in flight and starts no others against the brake,
after a restart too. Without HOST, list the brakes that are on.

  --stop   make no visits (the default, unless --delay is given)
  --delay  make one visit at a time, with at least this delay between two

--reason is required. The daemon keeps the reason with the brake and in its audit log.`

const brakeExample = `  decorum brake shop.example --reason "they wrote: too many requests"
  decorum brake shop.example --delay 30s --for 2h --reason "their sale is on"
  decorum brake --domain example.com --reason "asked to stay away"
  decorum brake shop.example --lift --reason "they say it is fine again"
  decorum brake`

// A brakeOptions holds the flags of decorum brake.
type brakeOptions struct {
	env *command.Env
	crawlaccess.DaemonFlags
	stop, withSubdomains, lift bool
	delay, duration            project.Duration // 0: not given; a brake without a duration stays on
	reason                     string
}

// NewBrakeCommand returns the command decorum brake.
func NewBrakeCommand(env *command.Env) *cobra.Command {
	b := brakeOptions{env: env}
	c := &cobra.Command{
		Use: "brake [HOST]", Short: "Stop or slow a host at once", Long: brakeHelp, Example: brakeExample,
		Args: command.ArgsOrUsageError(cobra.MaximumNArgs(1)),
	}
	fs := c.Flags()
	b.AddFlags(fs)
	fs.BoolVar(&b.stop, "stop", false, "make no visits (default, unless --delay is given)")
	fs.BoolVar(&b.withSubdomains, "domain", false, "brake the subdomains of HOST as well")
	fs.BoolVar(&b.lift, "lift", false, "lift the brake")
	fs.StringVar(&b.reason, "reason", "", "record `TEXT` as the reason; required")
	fs.Var(server.DurationFlag{Duration: &b.delay}, "delay",
		"slow the host: wait at least `TIME`, as 30s, between two visits")
	fs.Var(server.DurationFlag{Duration: &b.duration}, "for",
		"lift the brake automatically after `TIME`, as 2h or 7d (default: never)")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := env.WithSignalCancel(c.Context())
		defer stop()
		// Without HOST the command lists brakes. With a flag of a brake, the host was forgotten.
		for _, name := range []string{"stop", "domain", "lift", "reason", "delay", "for"} {
			if len(args) == 0 && fs.Changed(name) {
				return usage.Errorf("--%s: HOST is missing; without HOST, decorum brake only lists the brakes that "+
					"are on", name)
			}
		}
		if len(args) == 0 {
			return b.ExplainError(ctx, b.listBrakes(ctx))
		}
		return b.ExplainError(ctx, b.setOrLiftBrake(ctx, args[0]))
	}
	return c
}

// check returns a usage error if the flags of a brake are missing or contradict each other.
func (b *brakeOptions) check() error {
	switch {
	case b.reason == "":
		return usage.Errorf("--reason is required: the daemon keeps it with the brake and in its audit log")
	case b.stop && b.delay != 0:
		return usage.Errorf("--stop and --delay: a brake either stops or slows")
	case b.lift && (b.stop || b.delay != 0 || b.duration != 0 || b.withSubdomains):
		return usage.Errorf("--lift lifts any brake of the host: leave out the other flags")
	case b.delay < 0, b.duration < 0:
		return usage.Errorf("--delay and --for must not be negative")
	}
	return nil
}

// setOrLiftBrake sets or lifts the brake of the host name and prints what is in force now.
func (b *brakeOptions) setOrLiftBrake(ctx context.Context, name string) error {
	if err := b.check(); err != nil {
		return err
	}
	parseHost := supervisor.ParseBrakeHost
	if b.lift {
		parseHost = project.CanonicalHost // older versions accepted any name for a brake
	}
	host, ok := parseHost(name)
	if !ok {
		return usage.Errorf("%q is not a host name such as example.com", name)
	}
	client, err := b.NewClient(ctx)
	if err != nil {
		return err
	}
	if b.lift {
		if err := client.LiftBrake(ctx, host, b.reason); err != nil {
			return err
		}
		_, err := fmt.Fprintf(b.env.Stdout, "%s has no brake now\n", host)
		return err
	}
	on, err := client.SetBrake(ctx, host, api.BrakeRequest{
		WithSubdomains: b.withSubdomains, Stop: b.delay == 0, Delay: api.Milliseconds(b.delay), Reason: b.reason,
		Duration: api.Milliseconds(b.duration),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.env.Stdout, "%s: %s, %s\n", brakeTargetText(*on), brakeEffectText(*on), brakeExpiryText(*on))
	return err
}

// listBrakes prints the brakes that are on.
func (b *brakeOptions) listBrakes(ctx context.Context) error {
	client, err := b.NewClient(ctx)
	if err != nil {
		return err
	}
	brakes, err := client.Brakes(ctx)
	if err != nil {
		return err
	}
	var s reporttext.Builder
	writeBrakes(&s, brakes)
	return s.PrintTo(b.env.Stdout)
}

// writeBrakes writes a table of brakes. Reasons and names come from callers of the API, so their
// control characters are replaced.
func writeBrakes(s *reporttext.Builder, brakes []api.Brake) {
	if len(brakes) == 0 {
		s.WriteLine("no brake is on")
		return
	}
	s.WriteTable(func(row func(...any)) {
		row("HOST", "DOES", "UNTIL", "BY", "SINCE", "REASON")
		for _, b := range brakes {
			row(brakeTargetText(b), brakeEffectText(b), brakeExpiryText(b), plaintext.ReplaceNonPrintable(b.By),
				inspect.FormatTime(b.Since), plaintext.ReplaceNonPrintable(b.Reason))
		}
	})
}

func brakeTargetText(b api.Brake) string {
	if b.WithSubdomains {
		return "*." + b.Host
	}
	return b.Host
}

func brakeEffectText(b api.Brake) string {
	if b.Stop {
		return "stopped"
	}
	return "a visit every " + time.Duration(b.Delay).String()
}

func brakeExpiryText(b api.Brake) string {
	if b.Expires.IsZero() {
		return "until it is lifted"
	}
	return "until " + inspect.FormatTime(b.Expires)
}
