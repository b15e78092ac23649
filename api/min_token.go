package api

// GetMinToken is the point a read must see at least; nil when the caller asks
// for none. Queries of a partition implement it, so that the door can wait
// without knowing the operation.

// GetMinToken is the point the answer must include.
func (r *CommandsOutcomeRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *DocumentsGetRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *DocumentsListRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *DocumentsQueryRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *EventsReadRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *StreamsReadRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *QueuesExplainRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *QueuesInspectRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *QueuesListRequest) GetMinToken() *CommitToken { return r.MinToken }

// GetMinToken is the point the answer must include.
func (r *QueuesStatusRequest) GetMinToken() *CommitToken { return r.MinToken }
