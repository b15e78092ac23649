package client

import (
	"context"
	"iter"

	"github.com/keyload/keyload/api"
)

// Reads are iterators over every page of a read. A read that fails yields its
// error once, with a zero value, and ends.
type Reads struct{ doer api.Doer }

// Documents yields the documents of a collection in the order of ids, those
// whose ids begin with prefix only. A document that changes meanwhile is seen
// in its old or its new form.
func (r Reads) Documents(ctx context.Context, p api.PartitionRef, collection, prefix string) iter.Seq2[api.Document, error] {
	return pages(func(cursor string) ([]api.Document, string, error) {
		resp, err := api.Call(ctx, r.doer, api.DocumentsList, &api.DocumentsListRequest{
			Partition: p, Collection: collection, Prefix: prefix, Cursor: cursor, Limit: pageRecords,
		})
		if err != nil {
			return nil, "", err
		}
		return resp.Documents, resp.Cursor, nil
	})
}

// Query yields the documents that satisfy every condition of the request.
func (r Reads) Query(ctx context.Context, req api.DocumentsQueryRequest) iter.Seq2[api.Document, error] {
	return pages(func(cursor string) ([]api.Document, string, error) {
		page := req
		if cursor != "" {
			page.Cursor = cursor
		}
		resp, err := api.Call(ctx, r.doer, api.DocumentsQuery, &page)
		if err != nil {
			return nil, "", err
		}
		return resp.Documents, resp.Cursor, nil
	})
}

// Messages yields the messages of a lane without payloads, those in one state
// only when it is given. It claims nothing.
func (r Reads) Messages(ctx context.Context, lane api.LaneRef, state api.MessageState) iter.Seq2[api.MessageInfo, error] {
	return pages(func(cursor string) ([]api.MessageInfo, string, error) {
		resp, err := api.Call(ctx, r.doer, api.QueuesList, &api.QueuesListRequest{Lane: lane, State: state, Cursor: cursor, Limit: pageRecords})
		if err != nil {
			return nil, "", err
		}
		return resp.Messages, resp.Cursor, nil
	})
}

// Resources yields the catalog of a database in the order of names.
func (r Reads) Resources(ctx context.Context, tenant, database string) iter.Seq2[api.Resource, error] {
	return pages(func(cursor string) ([]api.Resource, string, error) {
		resp, err := api.Call(ctx, r.doer, api.ResourcesList, &api.ResourcesListRequest{
			Tenant: tenant, Database: database, Cursor: cursor, Limit: pageRecords,
		})
		if err != nil {
			return nil, "", err
		}
		return resp.Resources, resp.Cursor, nil
	})
}

// Stream yields the events of a stream that are there, from the first after a
// position; 0 begins at the start.
func (r Reads) Stream(ctx context.Context, stream api.StreamRef, after uint64) iter.Seq2[api.StoredEvent, error] {
	return untilTail(func(cursor string) ([]api.StoredEvent, string, uint64, error) {
		req := &api.StreamsReadRequest{Stream: stream, Cursor: cursor, Limit: pageRecords}
		if cursor == "" {
			req.AfterPosition = after
		}
		resp, err := api.Call(ctx, r.doer, api.StreamsRead, req)
		if err != nil {
			return nil, "", 0, err
		}
		return resp.Events, resp.Cursor, resp.Tail, nil
	})
}

// Events yields the events of a source that are there, from the first after a
// position; 0 begins at the start.
func (r Reads) Events(ctx context.Context, source api.SourceRef, after uint64) iter.Seq2[api.StoredEvent, error] {
	return untilTail(func(cursor string) ([]api.StoredEvent, string, uint64, error) {
		resp, err := r.events(ctx, source, after, cursor, 0)
		if err != nil {
			return nil, "", 0, err
		}
		return resp.Events, resp.Cursor, resp.Tail, nil
	})
}

// Tail yields the events of a source from the first after a position, and waits
// for further ones until ctx ends, which yields its error.
func (r Reads) Tail(ctx context.Context, source api.SourceRef, after uint64) iter.Seq2[api.StoredEvent, error] {
	return func(yield func(api.StoredEvent, error) bool) {
		cursor := ""
		for {
			resp, err := r.events(ctx, source, after, cursor, tailWaitMillis)
			if err != nil {
				yield(api.StoredEvent{}, err)
				return
			}
			for _, e := range resp.Events {
				if !yield(e, nil) {
					return
				}
			}
			cursor = resp.Cursor
		}
	}
}

const (
	// pageRecords is how many records one page of an iterator asks for; its
	// bytes are bounded too.
	pageRecords = 1_000
	// tailWaitMillis is how long one read of a tail waits.
	tailWaitMillis = 20_000
)

func (r Reads) events(ctx context.Context, source api.SourceRef, after uint64, cursor string, wait int64) (*api.EventsReadResponse, error) {
	req := &api.EventsReadRequest{Source: source, Cursor: cursor, Limit: pageRecords, WaitMillis: wait}
	if cursor == "" {
		req.AfterPosition = after
	}
	return api.Call(ctx, r.doer, api.EventsRead, req)
}

// pages yields every page until one has no cursor.
func pages[T any](read func(cursor string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			page, next, err := read(cursor)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

// untilTail yields pages of events, which always have a cursor, until the last
// event that was there is seen.
func untilTail(read func(cursor string) ([]api.StoredEvent, string, uint64, error)) iter.Seq2[api.StoredEvent, error] {
	return func(yield func(api.StoredEvent, error) bool) {
		for cursor := ""; ; {
			page, next, tail, err := read(cursor)
			if err != nil {
				yield(api.StoredEvent{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) == 0 || page[len(page)-1].Position >= tail {
				return
			}
			cursor = next
		}
	}
}
