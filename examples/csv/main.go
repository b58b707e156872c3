// Csv writes the URL, the status and the title of each page of a site as CSV. Run it again after
// Ctrl-C or a crash, and it resumes where it stopped.
//
//	go run ./examples/csv https://example.com/ >>titles.csv
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"log"
	"os"
	"os/signal"
	"strconv"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawl"
)

// config identifies the crawler to site owners. Tests change it.
var config = crawl.Config{Agent: "titlebot/1.0", Contact: "https://example.org/bot"} // yours

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := csv.NewWriter(os.Stdout)
	config.StateDir, config.Seeds = "titles", os.Args[1:]
	config.OnPage = func(_ context.Context, v *crawler.Visit) error {
		_ = out.Write([]string{v.URL().String(), strconv.Itoa(v.Status()), v.Title()})
		out.Flush()
		return out.Error()
	}
	switch err := crawl.Run(ctx, config); {
	case out.Error() != nil:
		log.Fatal(out.Error())
	case errors.Is(err, context.Canceled):
		log.Print(err, "; all rows so far are written, and the same command continues")
	case err != nil:
		log.Fatal(err)
	}
}
