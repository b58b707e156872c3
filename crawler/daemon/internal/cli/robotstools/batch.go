package robotstools

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
)

const robotsBatchHelp = `Answer many questions about robots.txt files, without the network. Questions come
as JSON Lines, from FILE or standard input; each line gets one line of JSON for an
answer, in the same order.

A question has
  robots         the file's text, or robots_base64 where that is no UTF-8
  agent          product token or a well-known crawler; --agent if absent
  url            the URL to judge; absent, only the file's own values are told
  dialect        google, yandex, or google-oss: Google's published C++ parser to the
                 letter, which takes any text for a URL; --dialect if absent
  extensions     false: without what the google dialect reads and Google does not
Other fields are ignored.

An answer has
  allowed        the verdict, null without url
  rule, line     what decided, null if no rule did
  crawl_delay_seconds
                 what the file asks of the agent, null for nothing
  sitemaps       what the file names, in its order
  host           the value of Host, null for none
  clean_url      the URL in canonical form and after Clean-param, null if it has none
  error          what is wrong with the question, only if something is
A bad line gets an error for an answer, and the next line is read.

Exit codes: 0 every line has its answer, 1 the questions could not be read or the
answers not written, 2 wrong usage.`

const robotsBatchExample = `  printf '%s\n' '{"robots":"User-agent: *\nDisallow: /a","url":"https://example.com/ab"}' | decorum robots batch
  decorum robots batch --dialect google-oss --agent Googlebot questions.jsonl > answers.jsonl`

func newBatchCommand(env *command.Env) *cobra.Command {
	var dialect, agent string
	c := &cobra.Command{
		Use: "batch [FILE]", Short: "Answer questions given as JSON Lines",
		Long: robotsBatchHelp, Example: robotsBatchExample, Args: command.ArgsOrUsageError(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, names []string) error {
			d, err := robots.ParseDialect(dialect)
			if err != nil {
				return usage.Errorf("--dialect: %w", err)
			}
			in, err := openFileOrStdin(c.InOrStdin(), append(names, "-")[0], "questions") // no name: standard input
			if err != nil {
				return err
			}
			defer in.Close()
			signal.Reset(os.Interrupt, syscall.SIGTERM) // there is nothing to put in order first
			return evaluateBatch(in, env.Stdout, newBatchEvaluator(d, agent))
		},
	}
	c.Flags().StringVar(&dialect, "dialect", "google", "`NAME` of the dialect of questions that name none")
	c.Flags().StringVar(&agent, "agent", "*", "`NAME` of the agent of questions that name none")
	return c
}

// evaluateBatch answers each line of in by one of out. Answers wait for others
// only while there are more questions to read at once, so that one can also
// talk to it line by line.
func evaluateBatch(in io.Reader, out io.Writer, c *batchEvaluator) error {
	r, w := bufio.NewReaderSize(in, 1<<20), bufio.NewWriterSize(out, 1<<16)
	enc := jsonline.NewEncoder(w)
	var buf []byte
	for first := true; ; first = false {
		line, err := plaintext.ReadLine(r, buf[:0])
		buf = line
		if first {
			line = bytes.TrimPrefix(line, []byte(plaintext.ByteOrderMark))
		}
		var result batchOutputLine
		switch {
		case errors.Is(err, plaintext.ErrLineTooLong):
			result = batchOutputLine{Error: err.Error()}
		case errors.Is(err, io.EOF) && len(line) == 0:
			return w.Flush()
		case err != nil && !errors.Is(err, io.EOF):
			return errors.Join(fmt.Errorf("cannot read the questions: %w", err), w.Flush())
		default:
			result = c.evaluateLine(line)
		}
		err = enc.Encode(result)
		if err == nil && r.Buffered() == 0 {
			err = w.Flush()
		}
		if err != nil {
			return fmt.Errorf("cannot write the answers: %w", err)
		}
	}
}
