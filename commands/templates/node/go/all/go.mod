module first-node

go 1.21
