package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const identityHelp = `Make the keys that sign a crawl's requests. Signatures let a site distinguish the crawl
from others that send the same User-Agent (RFC 9421, Web Bot Auth). A project names its
keys, and the server where sites find the public keys:

  agent:
    signature: {keys: [bot.pem], directory: https://bot.example.com}

decorum serve publishes the public keys; put it behind your host name and certificate.
Any other server can publish them too: decorum identity directory prints what it must
serve.`

const identityKeyHelp = `Write a new Ed25519 key to FILE, which only its owner may read, and print the key's
ID, which signed requests carry. FILE must not exist. openssl genpkey -algorithm
ed25519 makes such keys too.`

const identityDirectoryHelp = `Print the key directory of the keys in FILEs: a JSON Web Key Set of their public
keys. Serve it at /.well-known/http-message-signatures-directory, with the type
application/http-message-signatures-directory+json.`

// newIdentityCommand returns the command decorum identity and its subcommands.
func (a *program) newIdentityCommand() *cobra.Command {
	return command.NewGroup("identity", "Make keys to sign requests with", identityHelp, &cobra.Command{
		Use: "key FILE", Short: "Make a key", Long: identityKeyHelp, Example: "  decorum identity key bot.pem",
		Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, names []string) error { return a.createIdentityKey(names[0]) },
	}, &cobra.Command{
		Use: "directory FILE…", Short: "Print the directory of public keys", Long: identityDirectoryHelp,
		Example: "  decorum identity directory bot.pem next.pem > http-message-signatures-directory",
		Args:    command.ArgsOrUsageError(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, names []string) error { return a.printKeyDirectory(names) },
	})
}

// createIdentityKey writes a new private key to the file name with mode 0600, and prints the key's
// ID. It never overwrites a file.
func (a *program) createIdentityKey(name string) error {
	k, err := botauth.GenerateKey()
	if err != nil {
		return err
	}
	text, err := k.PrivatePEM()
	if err != nil {
		return err
	}
	// O_EXCL: a key that is overwritten cannot be restored, and may be in use.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usage.Errorf("%s already exists, and may be a key in use: name another file", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Stdout, k.ID())
	return err
}

// printKeyDirectory prints the JSON Web Key Set of the public keys of the key files.
func (a *program) printKeyDirectory(names []string) error {
	keys, err := (&project.Signing{KeyFiles: names}).ReadKeys(os.Open)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "%s\n", botauth.MarshalDirectory(keys...))
	return err
}
