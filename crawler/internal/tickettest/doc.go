// Package tickettest makes tickets for tests of fetchers. A crawl makes each ticket, for a visit on
// demand, and holds its lease as long as the test needs the ticket.
//
// Begin reading at Use. New starts a goroutine, which ends with the test.
package tickettest
