package daemonctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

const tokenHelp = `Manage the tokens of a daemon: token for full access and token-read for read-only
access, which are files in its data directory.`

const rotateHelp = `Replace a token of a running daemon, for example because it has leaked or because a
person leaves. The daemon writes a new random token to its file, on the disk, before
it answers. The old token is invalid at once: calls with it fail, and browsers that
logged in with it have to log in again. The daemon keeps running, and so do its crawls.

Copy the new token to the programs that use it, such as Prometheus. The command does
not print it. The tokens of --tokens are replaced in that file.

If no daemon runs, remove the file instead: the daemon creates a new token when it
starts.`

const rotateExample = `  decorum token rotate --data /var/lib/decorum/data
  decorum token rotate --role read --reason "it was in a log" --data /var/lib/decorum/data`

// NewTokenCommand returns the command decorum token.
func NewTokenCommand(env *command.Env) *cobra.Command {
	o := controlOptions{env: env}
	var role string
	rotate := &cobra.Command{
		Use: "rotate", Short: "Replace a token", Long: rotateHelp, Example: rotateExample,
		Args: command.ArgsOrUsageError(cobra.NoArgs),
	}
	o.addFlags(rotate)
	rotate.Flags().StringVar(&role, "role", string(api.RoleOperate),
		"replace the token of `ROLE`: operate (the file token) or read (token-read)")
	rotate.RunE = func(c *cobra.Command, _ []string) error {
		// Check the role before the daemon is called.
		if err := command.CheckChoice("--role", role, string(api.RoleOperate), string(api.RoleRead)); err != nil {
			return err
		}
		ctx, stop := env.WithSignalCancel(c.Context())
		defer stop()
		client, err := o.newClient(ctx)
		if err != nil {
			return err
		}
		// Each role has one token of the daemon, which has the name of its file.
		name := server.TokenFile
		if api.Role(role) == api.RoleRead {
			name = server.ReadTokenFile
		}
		t, err := client.RotateToken(ctx, name)
		if err != nil {
			return o.ExplainError(ctx, err)
		}
		_, err = fmt.Fprintf(env.Stdout, "%s is replaced, and the old one is invalid now; the new one is in %s\n",
			t.Name, plaintext.ReplaceNonPrintable(t.File))
		return err
	}
	return command.NewGroup("token", "Replace the tokens of a daemon", tokenHelp, rotate)
}
