# SPDX-License-Identifier: BSD-2-Clause
# Mutation testing; see tests/harness/mutants.sh. Included by the Makefile.

## mutants: takes one rule after the other out of the library and sees that a test fails; T=word, JOBS=n
.PHONY: mutants
mutants: deps-test
	@O='$(O)' JOBS='$(JOBS)' CC='$(CC)' tests/harness/mutants.sh run $(T)

## contract: writes docs/contract.md from tests/mutants/
.PHONY: contract
contract:
	@mkdir -p $(O)
	@tests/harness/mutants.sh table > $(O)/contract.md && mv $(O)/contract.md docs/contract.md
