# SPDX-License-Identifier: BSD-2-Clause
# A small model of commit and ownership, checked exhaustively by spin.

## model: the model of commits and ownership holds, and fails without each of its rules; DEEP=1: larger bounds
.PHONY: model
model:
	@tests/harness/deps.sh model
	@DEEP='$(DEEP)' tests/model/run.sh '$(O)/model' $(T)
