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

const identityHelp = `Keys that a crawl signs its requests with, so that a site can tell them from those
of somebody who only bears the same name (RFC 9421, Web Bot Auth). A project names
its keys, and where sites find the public halves:

  agent:
    signature: {keys: [bot.pem], directory: https://bot.example.com}

decorum serve publishes them there, behind a name and a certificate of yours; or
any server does that serves what decorum identity directory prints.`

const identityKeyHelp = `Write a new Ed25519 key to FILE, which nobody else may read, and print its ID, by
which requests name it. openssl genpkey -algorithm ed25519 makes such keys too.`

const identityDirectoryHelp = `Print the key directory of the keys in FILEs: a JSON Web Key Set of their public
halves. Serve it at /.well-known/http-message-signatures-directory, as
application/http-message-signatures-directory+json.`

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

// createIdentityKey writes a new key to a file that is not there yet.
func (a *program) createIdentityKey(name string) error {
	k, err := botauth.GenerateKey()
	if err != nil {
		return err
	}
	text, err := k.PrivatePEM()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usage.Errorf("%s is there already, and may be a key that is in use: name another file", name)
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

func (a *program) printKeyDirectory(names []string) error {
	keys, err := (&project.Signing{KeyFiles: names}).ReadKeys(os.Open)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "%s\n", botauth.MarshalDirectory(keys...))
	return err
}
