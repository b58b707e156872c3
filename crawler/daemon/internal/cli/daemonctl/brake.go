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

const brakeHelp = `Stop or slow a host at once, in all projects of a running daemon: requests in
flight are broken off, no other begins, and that holds after a restart too. Without
HOST, list the brakes that are on.

  --stop   no visit at all (what is done if neither is said)
  --delay  one visit at a time, with at least this rest between two

A reason is compulsory. It is kept with the brake, and in the audit.`

const brakeExample = `  decorum brake shop.example --reason "they wrote: too many requests"
  decorum brake shop.example --delay 30s --for 2h --reason "their sale is on"
  decorum brake --domain example.com --reason "asked to stay away"
  decorum brake shop.example --lift --reason "they say it is fine again"
  decorum brake`

// A brakeOptions is what decorum brake is asked for.
type brakeOptions struct {
	env *command.Env
	crawlaccess.DaemonFlags
	stop, withSubdomains, lift bool
	delay, duration            project.Duration
	reason                     string
}

func NewBrakeCommand(env *command.Env) *cobra.Command {
	b := brakeOptions{env: env}
	c := &cobra.Command{
		Use: "brake [HOST]", Short: "Stop or slow a host at once", Long: brakeHelp, Example: brakeExample, Args: command.ArgsOrUsageError(cobra.MaximumNArgs(1)),
	}
	fs := c.Flags()
	b.AddFlags(fs)
	fs.BoolVar(&b.stop, "stop", false, "make no visit at all")
	fs.BoolVar(&b.withSubdomains, "domain", false, "brake the subdomains of HOST as well")
	fs.BoolVar(&b.lift, "lift", false, "take the brake off")
	fs.StringVar(&b.reason, "reason", "", "why: `TEXT`, compulsory")
	fs.Var(server.DurationFlag{Duration: &b.delay}, "delay", "rest between two visits, as 30s")
	fs.Var(server.DurationFlag{Duration: &b.duration}, "for", "lift it by itself after `TIME`, as 2h or 7d")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := env.WithSignalCancel(c.Context())
		defer stop()
		for _, name := range []string{"stop", "domain", "lift", "reason", "delay", "for"} {
			if len(args) == 0 && fs.Changed(name) {
				return usage.Errorf("--%s: no HOST is named; without one, decorum brake only lists the brakes that are on", name)
			}
		}
		if len(args) == 0 {
			return b.ExplainError(ctx, b.listBrakes(ctx))
		}
		return b.ExplainError(ctx, b.setOrLiftBrake(ctx, args[0]))
	}
	return c
}

func (b *brakeOptions) check() error {
	switch {
	case b.reason == "":
		return usage.Errorf("--reason is compulsory: it is kept with the brake, and in the audit")
	case b.stop && b.delay != 0:
		return usage.Errorf("--stop and --delay: a brake either stops or slows")
	case b.lift && (b.stop || b.delay != 0 || b.duration != 0 || b.withSubdomains):
		return usage.Errorf("--lift takes the brake off whatever it does: leave out the other flags")
	case b.delay < 0, b.duration < 0:
		return usage.Errorf("--delay and --for cannot be less than nothing")
	}
	return nil
}

func (b *brakeOptions) setOrLiftBrake(ctx context.Context, name string) error {
	if err := b.check(); err != nil {
		return err
	}
	parseHost := supervisor.ParseBrakeHost
	if b.lift {
		parseHost = project.CanonicalHost // a brake of an older version may have any name
	}
	host, ok := parseHost(name)
	if !ok {
		return usage.Errorf("%q is not the name of a host, as example.com", name)
	}
	client, err := b.NewClient(ctx)
	if err != nil {
		return err
	}
	if b.lift {
		if err := client.LiftBrake(ctx, host, b.reason); err != nil {
			return err
		}
		_, err := fmt.Fprintf(b.env.Stdout, "%s has no brake any more\n", host)
		return err
	}
	on, err := client.SetBrake(ctx, host, api.BrakeRequest{
		WithSubdomains: b.withSubdomains, Stop: b.delay == 0, Delay: api.Milliseconds(b.delay), Reason: b.reason, Duration: api.Milliseconds(b.duration),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.env.Stdout, "%s: %s, %s\n", brakeTargetText(*on), brakeEffectText(*on), brakeExpiryText(*on))
	return err
}

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

// writeBrakes writes the brakes that are on.
func writeBrakes(s *reporttext.Builder, brakes []api.Brake) {
	if len(brakes) == 0 {
		s.WriteLine("no brake is on")
		return
	}
	s.WriteTable(func(row func(...any)) {
		row("HOST", "DOES", "UNTIL", "BY", "SINCE", "REASON")
		for _, b := range brakes {
			row(brakeTargetText(b), brakeEffectText(b), brakeExpiryText(b), plaintext.ReplaceNonPrintable(b.By), inspect.FormatTime(b.Since), plaintext.ReplaceNonPrintable(b.Reason))
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
